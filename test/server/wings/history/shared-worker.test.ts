/** The thread of a node that follows: what the log does not have any more is copied from the node that leads. */
import { rmSync } from 'node:fs'
import { jetstreamManager } from '@nats-io/jetstream'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { FromThread } from '../../../../server/wings/history/messages.ts'
import { HistoryThread } from '../../../../server/wings/history/thread.ts'
import { connectNats } from '../../../../storage/replicated/nats.ts'
import { streamName } from '../../../../storage/replicated/stream.ts'
import { TestHistoryNode } from '../../../storage/history/log/test-history-node.ts'
import { eventually } from '../../../support/eventually.ts'
import { NatsServers, natsMissing } from '../../../support/nats.ts'

const CLUSTER = 'main'
const LIMITS = { keepMs: 1e12, keepRollupsMs: 1e12, maxBytes: 2 ** 40, quotas: new Map() }

// Skipped where there is no nats-server.
describe.skipIf(natsMissing !== undefined)('a node that is new', () => {
  let nats: NatsServers
  let [leader, node]: TestHistoryNode[] = []
  let said: FromThread[] = []
  let failures: Error[] = []
  beforeAll(async () => {
    nats = await NatsServers.start(1)
  })
  afterAll(() => nats?.stop())
  beforeEach(() => {
    said = []
    failures = []
    leader = new TestHistoryNode(() => nats.urls)
    node = new TestHistoryNode(() => nats.urls)
    node.history.close()
  })
  afterEach(async () => {
    await leader?.close()
    node?.history.close()
    for (const each of [leader, node]) if (each !== undefined) rmSync(each.directory, { recursive: true, force: true })
  })

  /** The log loses all but its last message. */
  async function purge(last: number): Promise<void> {
    const connection = await connectNats({ servers: nats.urls }, 'purge')
    const manager = await jetstreamManager(connection)
    await manager.streams.purge(streamName(CLUSTER, 1, 'history'), { seq: last })
    await connection.close()
  }

  it('has what was recorded before the log began, without a loss, and what comes after it', async () => {
    const [from, to] = [leader as TestHistoryNode, node as TestHistoryNode]
    await from.lead(CLUSTER, 1)
    for (let at = 1; at <= 5; at++) {
      from.take(['a', 'b'], at)
      await from.stored()
    }
    await purge(from.history.log.place?.sequence ?? 0)
    from.log.sendCopies(CLUSTER, from.directory)
    const thread = new HistoryThread(
      { directory: to.directory, limits: LIMITS, shared: { log: to.options(CLUSTER), lead: undefined } },
      { message: (message) => said.push(message), failed: (error) => failures.push(error) },
    )
    await eventually(() => expect(said.map(({ kind }) => kind)).toContain('reached'))
    from.take(['c'], 6)
    await from.stored()
    // It is applied before the thread ends, or when it is opened again.
    await thread.close()
    to.open()
    await to.follow(CLUSTER)
    await eventually(() => expect(to.lines()).toEqual(from.lines()))
    expect([to.lines().length, to.losses(), failures]).toEqual([11, [], []])
    const problems = said.flatMap((one) => (one.kind === 'state' ? [one.problem] : []))
    expect(problems).toEqual([expect.stringContaining('copy'), ''])
    await to.close()
    to.open()
  })
})
