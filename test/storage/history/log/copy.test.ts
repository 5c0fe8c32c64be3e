/** A copy of the history of the node that leads: whole, or not at all. */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import type { NatsConnection } from '@nats-io/transport-node'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { fetchHistory, takeCopied } from '../../../../storage/history/log/copy.ts'
import { connectNats } from '../../../../storage/replicated/nats.ts'
import { eventually } from '../../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../../support/nats.ts'
import { TestHistoryNode } from './test-history-node.ts'

const DAY_MS = 86_400_000

// Skipped where there is no nats-server.
describe.skipIf(natsMissing !== undefined)('a copy of the history', () => {
  let nats: NatsServers
  let other: NatsConnection
  let leader: TestHistoryNode
  let node: TestHistoryNode
  let cluster = ''
  let number = 0
  beforeAll(async () => {
    nats = await NatsServers.start(1)
    other = await connectNats({ servers: nats.urls }, 'other')
  })
  afterAll(async () => {
    await other?.close()
    await nats?.stop()
  })
  beforeEach(async () => {
    cluster = `copied${++number}`
    ;[leader, node] = [new TestHistoryNode(() => nats.urls), new TestHistoryNode(() => nats.urls)]
    await leader.lead(cluster, 1)
    leader.take(['a', 'b'], -3 * DAY_MS)
    leader.take(['a'], -2 * DAY_MS)
    leader.take(['a', 'b'], 1)
    await leader.stored()
    leader.passDays(3)
  })
  afterEach(async () => {
    await leader.close()
    node.history.close()
    for (const { directory } of [leader, node]) rmSync(directory, { recursive: true, force: true })
  })

  const fetched = (signal = new AbortController().signal): Promise<boolean> =>
    fetchHistory(node.options(cluster), node.directory, signal)
  const left = (): string[] => ['copying', 'copied', 'sending'].filter((end) => existsSync(`${node.directory}-${end}`))
  const reopened = (): void => {
    node.history.close()
    takeCopied(node.directory)
    node.open()
  }

  it('has everything that is stored, with the files of days and the place in the log', async () => {
    leader.log.sendCopies(cluster, leader.directory)
    expect(readdirSync(leader.directory).filter((name) => /^20/.test(name))).not.toEqual([])
    expect(await fetched()).toBe(true)
    // What is there stays until the history is opened again.
    expect([node.lines(), left()]).toEqual([[], ['copied']])
    reopened()
    expect([node.lines(), left()]).toEqual([leader.lines(), []])
    expect(node.lines()).toHaveLength(5)
    expect(node.history.log.place?.sequence).toBe(leader.history.log.place?.sequence)
    await eventually(() => expect(readdirSync(`${leader.directory}-sending`)).toEqual([]))
  })

  it('leaves what it takes the place of beside it, if that had anything', async () => {
    leader.log.sendCopies(cluster, leader.directory)
    const beside = (): string[] =>
      readdirSync(dirname(node.directory)).filter((name) => name.startsWith(`${basename(node.directory)}.`))
    await fetched()
    reopened()
    expect(beside()).toEqual([])
    await fetched()
    reopened()
    expect(beside()).toEqual([`${basename(node.directory)}.replaced-1`])
    expect(node.lines()).toEqual(leader.lines())
    rmSync(`${node.directory}.replaced-1`, { recursive: true })
  })

  it('is not there if nobody sends one, or it was given up', async () => {
    expect(await fetched()).toBe(false)
    await expect(fetched(AbortSignal.abort())).rejects.toMatchObject({ message: expect.stringContaining('given up') })
    expect(left()).toEqual([])
  })

  it.each([
    ['names another directory', { bytes: 1, files: [['../fresh.db', 1]] }],
    ['names a file that is none of a history', { bytes: 1, files: [['cinnabar.db', 1]] }],
    ['has no list', { bytes: 1, files: 7 }],
    ['has an impossible length', { bytes: 1, files: [['fresh.db', -1]] }],
    ['refuses', { refused: 'the disk is full' }],
  ])('that %s is not taken', async (_, answer) => {
    const subscription = other.subscribe(`cin.${cluster}.copy-history`, {
      callback: (_error, message) => {
        message.respond(JSON.stringify(answer))
      },
    })
    await expect(fetched()).rejects.toThrow()
    subscription.unsubscribe()
    reopened()
    expect([node.lines(), left()]).toEqual([[], []])
  })

  it('is not begun where the disk has no room for it', async () => {
    leader.log.sendCopies(cluster, leader.directory)
    const space = () => ({ sizeBytes: 2 ** 40, freeBytes: 2 ** 30 + 1_000 })
    const { signal } = new AbortController()
    await expect(fetchHistory(node.options(cluster), node.directory, signal, space)).rejects.toMatchObject({
      code: 'FULL',
      message: expect.stringMatching(/a copy of the history needs 1 MiB .* there are 0 besides/),
    })
    expect(left()).toEqual([])
    await eventually(() => expect(readdirSync(`${leader.directory}-sending`)).toEqual([]))
    expect(await fetched()).toBe(true)
  })

  it('that was cut off is begun anew, and one that is whole takes the place of the history after a kill, too', async () => {
    mkdirSync(`${node.directory}-copying`)
    writeFileSync(`${node.directory}-copying/fresh.db`, 'half')
    reopened()
    expect(left()).toEqual([])
    leader.log.sendCopies(cluster, leader.directory)
    await fetched()
    node.history.close()
    // Killed after the first half of taking it.
    rmSync(node.directory, { recursive: true })
    takeCopied(node.directory)
    node.open()
    expect(node.lines()).toEqual(leader.lines())
  })
})
