/** What an object was worth when it was deleted: nothing that happened since the last sample is lost. */
import { describe, expect, it, test } from 'vitest'
import type { DecodeSteps, QmfMessage } from '../../../../protocol/qmf/types.ts'
import { deletionsLast } from '../../../../server/wings/qmf/console.ts'
import { ConsolePeer } from './console-peer.ts'
import { DEPTH, makeSensor, queue, queueDelete, START } from './sensor-fixture.ts'

const ID = '0-1-1-0-1'
const header = { key: queue.key, sampled: BigInt(START), created: 1n, deleted: 0n, id: ID }
const properties = ['0-0-1-0-3', 'q1', true, new Map()]
const c = (id: string, deleted: bigint): QmfMessage => ({
  op: 'c',
  sequence: 0,
  header: { ...header, id, deleted },
  properties,
})
const i = (id: string, deleted: bigint): QmfMessage => ({
  op: 'i',
  sequence: 0,
  header: { ...header, id, deleted },
  statistics: [3, 3n, 3n],
})

function* stepsOf(messages: readonly QmfMessage[]): DecodeSteps {
  yield* messages
  return undefined
}

test('the statistics of what is deleted come before its end, and nothing else changes its place', () => {
  const messages = [c('a', 0n), i('a', 0n), c('b', 5n), i('b', 5n), c('c', 5n), c('d', 5n), i('e', 5n)]
  expect([...deletionsLast(stepsOf(messages))]).toEqual([
    c('a', 0n),
    i('a', 0n),
    i('b', 5n),
    c('b', 5n),
    c('c', 5n),
    c('d', 5n),
    i('e', 5n),
  ])
  expect([...deletionsLast(stepsOf([]))]).toEqual([])
})

describe('a console', () => {
  it('tells the last statistics of an object that it knows, and then that it is gone', () => {
    const peer = new ConsolePeer().ready()
    const sample = peer.objects.find((object) => object.statistics !== undefined && object.properties !== undefined)
    if (sample?.properties === undefined || sample.statistics === undefined) throw new Error('no such object')
    const { properties: named, statistics } = sample
    const about = (id: string, deleted: bigint) => ({ key: sample.header.key, sampled: 9n, created: 1n, deleted, id })
    const [known, unknown] = ['0-1-1-0-500', '0-1-1-0-501'] as const
    peer.tell({ op: 'c', sequence: 0, header: about(known, 0n), properties: named })
    const reported = peer.objects.length
    for (const id of [unknown, known]) {
      const ending = { sequence: 0, header: about(id, 7n) }
      peer.tell({ op: 'c', ...ending, properties: named }, { op: 'i', ...ending, statistics })
    }
    expect(peer.objects.slice(reported).map((object) => [object.header.id, object.header.deleted])).toEqual([
      [known, 7n],
    ])
    expect(peer.gone).toEqual([known])
  })

  it('tells apart an object and a later one with its id', () => {
    const peer = new ConsolePeer().ready()
    const sample = peer.objects.find(({ properties }) => properties !== undefined)
    if (sample?.properties === undefined) throw new Error('no such object')
    const { properties } = sample
    const told = (created: bigint, deleted = 0n): void => {
      const header = { key: sample.header.key, sampled: created, created, deleted, id: '0-1-1-0-500' }
      peer.tell({ op: 'c', sequence: 0, header, properties })
    }
    told(1n)
    told(8n)
    expect(peer.gone).toEqual(['0-1-1-0-500'])
    expect(peer.objects.slice(-2).map(({ header }) => header.created)).toEqual([1n, 8n])
    told(1n, 7n)
    expect(peer.gone).toHaveLength(1)
    told(8n, 9n)
    expect(peer.gone).toHaveLength(2)
  })
})

describe('a sensor', () => {
  function open() {
    const made = makeSensor()
    const said = made.connect().learn(queue, queueDelete)
    said.broker.ready()
    said.queue(1, 0, 5)
    made.tapped(DEPTH, 'q1')
    made.hub.news()
    const end = (ms: number, depth: number): void => {
      const deleted = BigInt(START) + BigInt(ms) * 1_000_000n
      said.broker.object({ header: { ...header, deleted }, statistics: [depth, 10n, 1n] })
    }
    return { ...made, said, end }
  }

  it('gives what changed since the last sample the time of the end', () => {
    const { end, hub, said } = open()
    end(40, 8)
    said.broker.gone(ID)
    expect(hub.news()).toEqual(['msgDepth@b1/q1 = 8 at 40000', expect.stringContaining('died msgDepth@b1/q1')])
  })

  it('gives nothing twice', () => {
    const { end, hub } = open()
    end(40, 5)
    expect(hub.news()).toEqual([])
  })

  it('makes no object of one that has ended', () => {
    const { said, sensor } = open()
    said.broker.object({
      header: { ...header, id: '0-1-1-0-2', deleted: 5n },
      properties,
      statistics: [1, 1n, 1n],
    })
    expect([...sensor.series(DEPTH)].map(({ labels }) => labels.object)).toEqual(['q1'])
  })
})
