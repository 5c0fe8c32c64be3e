import { expect, it } from 'vitest'
import { clusterOf, nodeLook } from '../../console/cluster.ts'

const node = (more: object) => ({
  name: 'n2',
  role: 'follower',
  address: '10.0.0.2:7654',
  sequence: 7n,
  lag_ms: 20,
  obstacle: '',
  ...more,
})
const cluster = { name: 'main', node: 'n1', leader: 'n1', epoch: 3, since: 1_700_000_000_000_000, version: '1' }

it('is read from the record of an admin, and from that of others, who see no nodes', () => {
  const [read] = clusterOf({ ...cluster, nodes: [node({})] }).nodes
  expect(read).toEqual({
    name: 'n2',
    role: 'follower',
    address: '10.0.0.2:7654',
    sequence: 7,
    lagMs: 20,
    obstacle: '',
  })
  expect(clusterOf(cluster)).toEqual({ name: 'main', leader: 'n1', epoch: 3, since: 1_700_000_000_000_000, nodes: [] })
})

it.each([
  ['good', {}],
  ['good', { role: 'leader' }],
  ['good', { lag_ms: 9_999 }],
  ['attention', { lag_ms: 10_000 }],
  ['attention', { obstacle: 'its disk is full' }],
  ['gone', { role: 'not heard', obstacle: 'it is stopped or cut off' }],
])('a node looks %s with %j', (look, more) => {
  const [read] = clusterOf({ ...cluster, nodes: [node(more)] }).nodes
  expect(read && nodeLook(read)).toBe(look)
})
