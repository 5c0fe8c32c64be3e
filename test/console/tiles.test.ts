/** What the overview says before data came, after a refusal, and of data. */
import { describe, expect, it, vi } from 'vitest'
import type { Consumer, Sample } from '../../client/browser.ts'
import { type ChannelState, Fleet, type SensorState, type Stats } from '../../console/fleet.ts'
import { type Answered, committed, diskUsed, lost, valuesIn, waiting } from '../../console/tiles.ts'

const NOTHING: Answered = { stats: undefined, channels: undefined, sensors: undefined, problems: {} }
const STATS: Stats = {
  software: 'cinnabar',
  uptime: 1,
  storage: 'ok',
  faults: 0,
  sentValues: undefined,
  diskSizeBytes: undefined,
  diskFreeBytes: undefined,
  droppedLastHour: undefined,
}

function textsOf(answered: Answered) {
  return [
    valuesIn(answered, undefined),
    committed(answered, undefined, undefined),
    waiting(answered, 0),
    lost(answered),
    diskUsed(answered),
  ].map(({ figure, note }) => `${figure} ${note}`)
}

describe('the tiles of the overview', () => {
  it('say nothing but that they wait, before the server has answered', () => {
    expect(textsOf(NOTHING)).toEqual(Array(5).fill('– loading'))
    expect(valuesIn(NOTHING, undefined).isLoading).toBe(true)
  })

  it('say of what is refused that it cannot be read, and not that it is nothing', () => {
    const problems = { 'producer.stats': 'no', 'producer.channels': 'no', 'producer.sensors': 'no' }
    expect(textsOf({ ...NOTHING, problems })).toEqual(Array(5).fill('– cannot be read'))
    expect(valuesIn({ ...NOTHING, problems }, undefined).isLoading).toBeUndefined()
  })

  it('say that something is none only if that was the answer', () => {
    expect(textsOf({ ...NOTHING, stats: STATS, channels: [], sensors: [] })).toEqual([
      '– from 0 sources',
      '– by 0 channels',
      '0 nothing waits',
      '0 nothing was lost',
      '– only an admin may see it',
    ])
    const admin = { ...STATS, diskSizeBytes: 1000, diskFreeBytes: 250, droppedLastHour: { overflow: 3, age: 0 } }
    expect(diskUsed({ ...NOTHING, stats: admin }).figure).toBe('75 %')
    expect(lost({ ...NOTHING, stats: admin })).toMatchObject({
      title: 'Lost, last hour',
      figure: '3',
      note: 'overflow 3',
    })
  })

  it('sum up what the channels of a user have lost, who is no admin', () => {
    const dropped = [{ age: 2 }, { age: 1, overflow: 10 }]
    const channels = dropped.map((one) => ({ dropped: one }) as unknown as ChannelState)
    expect(lost({ ...NOTHING, stats: STATS, channels })).toMatchObject({ figure: '13', note: 'most: overflow 10' })
    // Who may not read the state of the server either, still sees these.
    const problems = { 'producer.stats': 'no' }
    expect(lost({ ...NOTHING, channels, problems })).toMatchObject({ title: 'Lost', figure: '13' })
  })

  it('count what comes in as sources, and not what drains send', () => {
    const sensors = ['host', 'gmetric/acme', 'drain/acme'].map((name) => ({ name }) as SensorState)
    expect(valuesIn({ ...NOTHING, sensors }, 497)).toEqual({ figure: '497/s', note: 'from 2 sources' })
  })
})

describe('the state of the server', () => {
  type Took = (sample: Sample) => void

  /** A session in which only what is not `refused` can be followed. */
  async function followed(refused: readonly string[] = []) {
    const took = new Map<string, Took>()
    const consumer = {
      capabilities: { producer: { id: '01', name: 'main' }, below: [] },
      on: () => () => {},
      query: () => Promise.resolve({ elements: [] }),
      follow: (metric: string, _: unknown, handler: Took) => {
        if (refused.includes(metric)) return Promise.reject(new Error('not for you'))
        took.set(metric, handler)
        return Promise.resolve({})
      },
      run: () => Promise.resolve(),
    } as unknown as Consumer
    const fleet = new Fleet(consumer)
    await fleet.follow()
    await vi.waitFor(() => expect(took.size + Object.keys(fleet.problems.value).length).toBe(6))
    return { fleet, took }
  }

  it('counts what comes in once, although a drain hands it on', async () => {
    const { fleet, took } = await followed()
    const read = (seconds: number, received: number, sent: number): void => {
      const counters = [
        { name: 'gmetric/acme', state: 'listening', detail: '', counters: { values: received } },
        { name: 'drain/acme', state: 'sending', detail: '', counters: { values: sent } },
      ]
      took.get('producer.sensors')?.({ plain: counters, time: seconds * 1e6 } as unknown as Sample)
    }
    read(1, 1000, 800)
    read(2, 1497, 1305)
    expect(fleet.curve('received').value).toEqual([497])
    expect(fleet.curve('sensor drain/acme').value).toEqual([505])
  })

  it('counts the alerts that fire of the tenant alone', async () => {
    const { fleet, took } = await followed()
    expect(fleet.firing.value).toBe(0)
    const of = (tenant: string, firing: bigint) => ({ tenant, firing })
    took.get('producer.alerts')?.({ plain: [of('acme', 3n), of('default', 2n)] } as unknown as Sample)
    expect(fleet.firing.value).toBe(2)
    took.get('producer.alerts')?.({ plain: [of('acme', 3n)] } as unknown as Sample)
    expect(fleet.firing.value).toBe(0)
  })

  it('draws what was lost only after it is known which of the two figures that is', async () => {
    const { fleet, took } = await followed()
    const losing = { plain: [{ channel: 1, dropped: { age: 5 } }], time: 1e6 } as unknown as Sample
    took.get('producer.channels')?.(losing)
    await vi.waitFor(() => expect(fleet.channels.value).toHaveLength(1))
    expect(fleet.curve('lost').value).toEqual([])
    took.get('producer.stats')?.({ plain: { dropped_last_hour: { age: 2 } }, time: 2e6 } as unknown as Sample)
    expect(fleet.curve('lost').value).toEqual([2])
    const refused = await followed(['producer.stats'])
    refused.took.get('producer.channels')?.(losing)
    await vi.waitFor(() => expect(refused.fleet.curve('lost').value).toEqual([5]))
  })

  it('knows of notices only after it follows them', async () => {
    expect((await followed()).fleet.notices.value).toEqual([])
    const { fleet } = await followed(['producer.notices'])
    expect(fleet.notices.value).toBeUndefined()
    expect(fleet.problems.value['producer.notices']).toContain('Not for you.')
  })
})
