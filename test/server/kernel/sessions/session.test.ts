/** A session between a link of the test's own and a channel with a real queue. */
import { describe, expect, it } from 'vitest'
import type { Link, LinkListener } from '../../../../protocol/link/link.ts'
import { Count } from '../../../../server/kernel/accounts/quotas.ts'
import type { Channel } from '../../../../server/kernel/channels/channel.ts'
import { Outbox } from '../../../../server/kernel/channels/outbox.ts'
import { TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { FairWork } from '../../../../server/kernel/core/fair-work.ts'
import { Session, type SessionOptions } from '../../../../server/kernel/sessions/session.ts'
import { command, join } from '../../../support/bytes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'
import { describeFrames, Rig } from '../channels/rig.ts'

const FIRST_ID = 100
const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A link that takes what it is written when the test says so; once it is dead, it says at once that nothing will be taken. */
class TestLink {
  readonly sent: Uint8Array[] = []
  listener: LinkListener | undefined
  #isDead = false
  readonly #waiting: (() => void)[] = []

  listen(listener: LinkListener): void {
    this.listener = listener
  }

  write(bytes: Uint8Array, written?: () => void): void {
    this.sent.push(bytes)
    if (this.#isDead) written?.()
    else if (written) this.#waiting.push(written)
  }

  drain(): void {
    for (const written of this.#waiting.splice(0)) written()
  }

  die(): void {
    this.#isDead = true
    this.drain()
  }

  pause(): void {}
  resume(): void {}
  end(): void {}
  destroy(): void {}
}

/** As `Sessions` does it. */
function begin(session: Session): void {
  try {
    session.begin()
  } catch (error) {
    session.crashed(error)
  }
}

interface World {
  /** The quota of connections of its tenant. */
  readonly connections?: { enter(): void; leave(): void }
  /** Makes a channel of its own; by default it has the one that was dialled. */
  readonly create?: () => Channel
  /** Takes what the session throws. */
  readonly failed?: (error: unknown) => void
}

function thrown(error: unknown): never {
  throw error
}

/** A dialled session, which needs no login, attached to a channel on which one value is stored. */
async function open({ connections = { enter() {}, leave() {} }, create, failed = thrown }: World = {}) {
  const clock = new FakeClock()
  const turn = new TurnScheduler(clock)
  const work = new FairWork(clock)
  const rig = new Rig()
  await rig.open()
  const { queue } = rig
  const outbox: Outbox = new Outbox({
    ...{ tenant: 'acme', queue, turn, clock, standstill: () => {} },
    read: (blocks) => Promise.all(blocks.map(rig.read)),
    failed: (error) => {
      throw error
    },
  })
  const channel = {
    ...{ id: 1, queue, outbox, bindings: new Map() },
    get connection() {
      return outbox.connection
    },
  } as unknown as Channel
  const registry = {
    create,
    attach: (_: Channel, session: Session) => outbox.attach(session),
    detach: (_: Channel, session: Session) => {
      if (outbox.connection === session) outbox.detach()
    },
  }
  const nothing = (): void => {}
  const context = {
    ...{ clock, turn, work, registry, journal: rig.journal, generation: 'g', software: 's' },
    log: { info: nothing, debug: nothing, warn: nothing, error: nothing },
    quotas: { of: () => ({ connections }) },
    accounts: { identity: () => ({ tenant: 'acme', name: 'ada', role: 'consumer', userId: 1 }) },
    self: { name: { name: 'n' }, below: () => [], changes: 0 },
    bindings: { *endAllUnbound() {} },
    faults: {
      report: (_: string, error: unknown) => failed(error),
    },
  }
  const link = new TestLink()
  const outbound = {
    auth: { methods: () => [], begin: () => ({}) },
    channel: create ? undefined : channel,
    destination: '',
    owner: {},
  }
  const connection = { link: link as unknown as Link, transport: 'tcp', format: 'xdr', peer: { address: '' }, outbound }
  const options = { context, connection, handlers: {}, authenticated: nothing, ended: nothing }
  const session = new Session(options as unknown as SessionOptions)
  rig.append(7, 1)
  rig.persist()
  begin(session)
  for (let turns = 0; turns < 4; turns++) await nextTurn()
  link.drain()
  link.sent.length = 0
  return { rig, turn, clock, outbox, link, session }
}

describe('a session', () => {
  it('counts in the quota of connections until it ends, also if it finds no channel', async () => {
    const connections = new Count('connections', () => 2)
    const failures: unknown[] = []
    const create = (): never => {
      throw new Error('no channel')
    }
    const { session } = await open({ connections, create, failed: (error) => failures.push(error) })
    expect([session.isOver, failures, connections.used]).toEqual([true, [new Error('no channel')], 0])
    const other = await open({ connections })
    expect(connections.used).toBe(1)
    other.session.end()
    expect(connections.used).toBe(0)
  })

  it('that is one too many leaves nothing that it has not entered', async () => {
    const connections = new Count('connections', () => 1)
    await open({ connections })
    const { session } = await open({ connections })
    expect([session.isOver, connections.used]).toEqual([true, 1])
  })

  it('writes responses before the values that come after them, also if responding has no time left in the turn', async () => {
    const { rig, turn, clock, outbox, link } = await open()
    turn.schedule('respond', { tenant: 'acme', atTurnEnd: () => clock.advance(10) })
    link.listener?.data(command.nop(5))
    rig.append(7, 1)
    outbox.wake()
    await nextTurn()
    const kinds = link.sent.map((bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(4))
    expect(kinds.slice(0, 2)).toEqual([0xffffffff, 7])
  })

  it('gives the next connection what it could not write any more, when its link has ended among other writes', async () => {
    const { rig, outbox, link, session } = await open()
    rig.append(7, 2_000)
    outbox.wake()
    await nextTurn()
    link.drain()
    // COMMITs wait for the disk, more values are being written, and the peer has sent its last.
    rig.journal.atTurnEnd()
    rig.queue.commit(FIRST_ID + 2_000, true)
    link.listener?.data(join(...Array.from({ length: 100 }, (_, index) => command.commit(index + 1, 0))))
    await nextTurn()
    rig.store.complete()
    rig.journal.atTurnEnd()
    rig.append(7, 10_000)
    outbox.wake()
    await nextTurn()
    link.listener?.finished()
    rig.store.complete()
    link.die()
    await nextTurn()
    expect([session.isOver, outbox.connection]).toEqual([true, undefined])
    const got: string[] = []
    const next = {
      ...{ undrained: 0, behind: false, writeAnswers: () => {}, notice: () => {}, end: () => {} },
      writeValues: (bytes: Uint8Array, written: () => void) => {
        got.push(...describeFrames(bytes))
        written()
      },
    }
    outbox.attach(next)
    for (let turns = 0; turns < 5; turns++) await nextTurn()
    expect(got).toHaveLength(10_000)
    expect(rig.queue.counts.inFlight).toBe(10_000)
  })
})
