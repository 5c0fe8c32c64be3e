import { describe, expect, it } from 'vitest'
import { type Labelled, labelsText, namingOf } from '../../console/labels.ts'

const CPU = 'prometheus.node_cpu_seconds_total'

function series(labels: Readonly<Record<string, string>>, { metric = CPU, args = {} } = {}): Labelled {
  return { metric, args, labels: { ...args, ...labels } }
}

describe('namingOf', () => {
  it('names series by the labels that differ, and says once what they have alike', () => {
    const all = ['idle', 'user'].map((mode) => series({ cpu: '0', instance: 'node062:9100', job: 'node', mode }))
    expect(namingOf(all)).toEqual({
      names: ['mode=idle', 'mode=user'],
      common: 'cpu=0 instance=node062:9100 job=node',
    })
  })

  it('says nothing of what was asked for, unless a pattern was', () => {
    const given = ['idle', 'user'].map((mode) => series({ mode }, { args: { cpu: '0' } }))
    expect(namingOf(given)).toEqual({ names: ['mode=idle', 'mode=user'], common: '' })
    const open = { metric: CPU, args: { cpu: '*' }, labels: { cpu: '0' } }
    expect(namingOf([open])).toEqual({ names: [CPU], common: 'cpu=0' })
  })

  it('names the metric where there are several, and the arguments where these differ', () => {
    const load = { metric: 'gmetric.load_one' }
    const hosts = ['web1', 'web2'].map((host) => series({}, { ...load, args: { host } }))
    expect(namingOf(hosts).names).toEqual(['host=web1', 'host=web2'])
    expect(namingOf([...hosts, series({}, { metric: 'gmetric.x', args: { host: 'web1' } })]).names).toEqual([
      'gmetric.load_one host=web1',
      'gmetric.load_one host=web2',
      'gmetric.x host=web1',
    ])
  })

  it('names a series without the label by its metric', () => {
    expect(namingOf([series({}), series({ mode: 'idle' })]).names).toEqual([CPU, 'mode=idle'])
    expect(namingOf([series({})])).toEqual({ names: [CPU], common: '' })
    expect(namingOf([])).toEqual({ names: [], common: '' })
  })
})

it('leaves out labels that are empty', () => {
  expect(labelsText({ host: 'web1', index: '' })).toBe('host=web1')
})
