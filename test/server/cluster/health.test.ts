import { describe, expect, it } from 'vitest'
import { healthProblem, readinessProblem } from '../../../server/cluster/health.ts'
import { TestCluster } from '../../support/test-cluster.ts'

/** How n2 sees the cluster. */
function follower(change: Parameters<TestCluster['change']>[1] = {}): TestCluster {
  const cluster = new TestCluster()
  cluster.node = 'n2'
  cluster.change('n2', change)
  return cluster
}

describe('a node is healthy', () => {
  it('if it leads, whatever else', () => {
    const cluster = new TestCluster()
    cluster.change('n1', { lagMs: 60_000 })
    expect(healthProblem(cluster.state())).toBeUndefined()
  })

  it('if it follows, less than ten seconds behind', () => {
    expect(healthProblem(follower({ lagMs: 9_999 }).state())).toBeUndefined()
    expect(healthProblem(follower({ lagMs: 10_000 }).state())).toBe('n2 is 10 s behind the leader')
    expect(healthProblem(follower({ lagMs: 90_500 }).state())).toBe('n2 is 90 s behind the leader')
  })

  it('unless something keeps it from following, or it does neither yet', () => {
    expect(healthProblem(follower({ obstacle: 'the disk is full' }).state())).toBe('the disk is full')
    expect(healthProblem(follower({ role: 'not heard' }).state())).toBe('n2 neither leads nor follows')
    const unknown = follower()
    unknown.node = 'n9'
    expect(healthProblem(unknown.state())).toBe('n9 neither leads nor follows')
  })
})

describe('a node is ready', () => {
  const own = (problem?: string) => ({ unready: () => problem })

  it('as its server is while it leads', () => {
    const state = new TestCluster().state()
    expect(readinessProblem(state, own())).toBeUndefined()
    expect(readinessProblem(state, own('storage: full'))).toBe('storage: full')
  })

  it('if it follows, its listeners are open, and it knows where the leader is', () => {
    const cluster = follower({ lagMs: 60_000 })
    expect(readinessProblem(cluster.state(), own())).toBeUndefined()
    expect(readinessProblem(cluster.state(), own('starting'))).toBe('starting')
    cluster.change('n1', { address: '' })
    expect(readinessProblem(cluster.state(), own())).toBe('n1 leads, and `cluster.nodes` of n2 does not name it')
    cluster.lead(undefined)
    expect(readinessProblem(cluster.state(), own())).toBe('no node leads')
  })
})
