/** The command reader between raw bytes and a response writer, with a session, a clock and turns of the test's own. */
import { describe, expect, it } from 'vitest'
import type { Link } from '../../../../protocol/link/link.ts'
import type { Channel } from '../../../../server/kernel/channels/channel.ts'
import { Journal } from '../../../../server/kernel/channels/journal.ts'
import { TurnScheduler } from '../../../../server/kernel/channels/turn-scheduler.ts'
import { StatusError } from '../../../../server/kernel/core/errors.ts'
import { FairWork, type Steps } from '../../../../server/kernel/core/fair-work.ts'
import { CommandReader, type ReadSession } from '../../../../server/kernel/sessions/command-reader.ts'
import type { CommandHandlers, Outcome } from '../../../../server/kernel/sessions/handler.ts'
import { LinkWriter } from '../../../../server/kernel/sessions/link-writer.ts'
import { ResponseWriter } from '../../../../server/kernel/sessions/response-writer.ts'
import { command, join, status } from '../../../support/bytes.ts'
import { FakeClock } from '../../../support/fake-clock.ts'

const MAX_UNANSWERED = 262_144
const MAX_EFFECTS = 512
/** More than one party may take of a turn. */
const LONG_MS = 10

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
const nops = (first: number, count: number): Uint8Array =>
  join(...Array.from({ length: count }, (_, index) => command.nop(first + index)))

/** `count` COMMITs whose seqs and transaction ids follow each other. */
function commits(first: number, count: number): Uint8Array {
  const one = command.commit(first, first)
  const bytes = new Uint8Array(count * one.length)
  const view = new DataView(bytes.buffer)
  for (let index = 0; index < count; index++) {
    bytes.set(one, index * one.length)
    view.setUint32(index * one.length + 8, first + index)
    view.setUint32(index * one.length + 16, first + index)
  }
  return bytes
}

/** A decision that the test makes. */
function decision<T>() {
  let decide: (decided: T) => void = () => {}
  let refuse: (error: Error) => void = () => {}
  const promise = new Promise<T>((resolve, reject) => {
    decide = resolve
    refuse = reject
  })
  return { promise, decide, refuse }
}

/** `events` tells in order what the reader does with its link and its session, and `answered` has the seqs of the responses. */
function rig(handlers: Partial<Record<keyof CommandHandlers, (session: ReadSession) => unknown>> = {}) {
  const clock = new FakeClock()
  const turn = new TurnScheduler(clock)
  const journal = new Journal({ write: () => {} }, turn, { age: () => 0, wallMs: () => 0 })
  const events: string[] = []
  const answered: number[] = []
  const statuses: number[] = []
  const turns: (() => void)[] = []
  const work = new FairWork(clock, (next) => void turns.push(next))
  const write = (bytes: Uint8Array, drained?: () => void): void => {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    for (let at = 0; at < bytes.length; at += 4 + view.getUint32(at)) {
      answered.push(view.getUint32(at + 8))
      statuses.push(view.getUint32(at + 12))
    }
    if (drained) turns.push(drained)
  }
  const link = {
    write,
    pause: () => void events.push('pause'),
    resume: () => void events.push('resume'),
  } as unknown as Link
  const crashed = (error: unknown): void => {
    events.push(`crashed: ${(error as Error).message}`)
    leave()
  }
  const responses = new ResponseWriter({
    ...{ journal, turn, work, failed: crashed, tenant: () => 'acme', isBehind: () => false },
    linkWriter: new LinkWriter({ link, crashed }, clock),
    onProgress: () => reader.resume(),
  })
  const queue = {
    commitRun(_: number, count: number): number {
      journal.change(change)
      return count
    },
  }
  const state = { isOver: false, isWrapping: false, isAuthenticated: true }
  const leave = (): void => {
    if (state.isOver) return
    state.isOver = true
    responses.end()
  }
  const session = {
    ...{ link, tenant: 'acme', isReceiver: false, behind: false, channel: { queue } as unknown as Channel },
    get isOver() {
      return state.isOver
    },
    get isWrapping() {
      return state.isWrapping
    },
    get isAuthenticated() {
      return state.isAuthenticated
    },
    resume: () => reader.resume(),
    stopReading: () => reader.stop(),
    end: () => {
      events.push('end')
      responses.flush()
      leave()
    },
    fail: (detail: string) => {
      events.push(`fail: ${detail}`)
      leave()
    },
    crashed,
  } as unknown as ReadSession
  const login = decision<void>()
  const reader: CommandReader = new CommandReader({
    ...{ session, responses, work, format: 'xdr', handlers: handlers as unknown as CommandHandlers },
    authenticate: async (seq) => {
      await login.promise
      state.isAuthenticated = true
      responses.ok(seq, 1)
    },
    wrap: () => {
      events.push('wrap')
      state.isWrapping = true
    },
  })
  /** Others have work, too, which takes the rest of this turn: what comes now waits for the next one. */
  const spendTurn = (): void => {
    const step = (): true => {
      clock.advance(LONG_MS)
      return true
    }
    work.add({ tenant: 'other' }, { step, failed: () => {} })
  }
  /** The work of the next turn, then its end. */
  const nextTurn = (): void => {
    for (const run of turns.splice(0)) run()
    turn.run()
  }
  /** Everything so far is on the disk. */
  const persist = (): void => {
    turn.run()
    journal.onDurable(journal.durable + 1)
    turn.run()
  }
  return {
    clock,
    reader,
    responses,
    state,
    events,
    answered,
    statuses,
    login,
    spendTurn,
    nextTurn,
    persist,
    leave,
  }
}

const change = { put: 'tenant', row: { name: 'acme', quota: '{}' } } as const

describe('commands that wait for their turn', () => {
  it('pause the link, are dispatched once and in order when it is their turn, and let it flow again', () => {
    const { reader, events, answered, spendTurn, nextTurn } = rig()
    spendTurn()
    reader.data(nops(1, 3))
    expect(events).toEqual(['pause'])
    reader.data(nops(4, 2))
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2, 3, 4, 5],
      ['pause', 'resume'],
    ])
  })

  it('wait with the rest if the time of the turn is over in their middle', () => {
    const names: string[] = []
    const rigged = rig({
      STOP: () => {
        names.push('stop')
        rigged.clock.advance(LONG_MS)
        return 0
      },
    })
    const { reader, events, answered, nextTurn } = rigged
    reader.data(join(command.stop(1, 7), nops(2, 20)))
    expect([names, events]).toEqual([['stop'], ['pause']])
    nextTurn()
    expect(answered).toEqual(Array.from({ length: 21 }, (_, index) => index + 1))
    expect(events).toEqual(['pause', 'resume'])
  })

  it('are all answered before the connection is ended, when the peer sends no more meanwhile', () => {
    const { reader, events, answered, spendTurn, nextTurn } = rig()
    spendTurn()
    reader.data(nops(1, 2))
    reader.finished()
    reader.data(nops(3, 1))
    expect(events).toEqual(['pause', 'resume'])
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2],
      ['pause', 'resume', 'end'],
    ])
  })

  it('are dropped when the connection is gone meanwhile', () => {
    const { reader, events, answered, spendTurn, nextTurn, leave } = rig()
    spendTurn()
    reader.data(nops(1, 2))
    leave()
    nextTurn()
    nextTurn()
    expect([answered, events]).toEqual([[], ['pause']])
  })

  it('crash the session before it may end by itself, if one fails through no fault of the peer', () => {
    const { reader, responses, events, spendTurn, nextTurn } = rig()
    spendTurn()
    reader.data(command.nop(1))
    reader.finished()
    const failing = (): never => {
      throw new Error('no space')
    }
    Object.assign(responses, { ok: failing, refuse: failing })
    nextTurn()
    expect(events).toEqual(['pause', 'resume', 'crashed: no space'])
  })
})

describe('a command that is decided later', () => {
  it('holds up those after it, pauses the link, and lets both go on', async () => {
    const { promise, decide } = decision<Outcome>()
    const { reader, events, answered, nextTurn } = rig({ STOP: () => promise })
    reader.data(join(command.nop(1), command.stop(2, 7), command.nop(3)))
    nextTurn()
    expect([answered, events]).toEqual([[1], ['pause']])
    decide(0)
    await settled()
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2, 3],
      ['pause', 'resume'],
    ])
  })

  it('is refused if the decision fails, and those after it are handled', async () => {
    const { promise, refuse } = decision<Outcome>()
    const { reader, events, answered, statuses, nextTurn } = rig({ STOP: () => promise })
    reader.data(join(command.stop(1, 7), command.nop(2)))
    refuse(new StatusError('PERMISSION_DENIED', 'not this one'))
    await settled()
    nextTurn()
    expect([answered, statuses, events]).toEqual([
      [1, 2],
      [status.PERMISSION_DENIED, status.OK],
      ['pause', 'resume'],
    ])
  })

  it('is answered although it says meanwhile that it is the last; nothing after it is handled, and the link flows', async () => {
    const { promise, decide } = decision<Outcome>()
    const { reader, events, answered, nextTurn } = rig({ STOP: () => promise })
    reader.data(join(command.stop(1, 7), command.nop(2)))
    reader.stop()
    expect(events).toEqual(['pause', 'resume'])
    reader.data(command.nop(3))
    decide(0)
    await settled()
    nextTurn()
    reader.finished()
    expect([answered, events]).toEqual([[1], ['pause', 'resume']])
  })

  it('takes effect although the connection ends meanwhile, and no other is handled', async () => {
    const { promise, decide } = decision<Outcome>()
    let effects = 0
    const { reader, answered, events, nextTurn, leave } = rig({ STOP: () => promise, SUBSCRIBE: () => effects-- })
    reader.data(join(command.stop(1, 7), command.subscribe(2, 7)))
    leave()
    decide({ result: 0, onSent: () => void effects++ })
    await settled()
    nextTurn()
    expect([effects, answered, events]).toEqual([1, [], ['pause']])
  })

  it('is answered before the connection ends, when the peer sends no more meanwhile', async () => {
    const { promise, decide } = decision<Outcome>()
    const { reader, answered, events, nextTurn } = rig({ STOP: () => promise })
    reader.data(command.stop(1, 7))
    reader.finished()
    nextTurn()
    expect(events).toEqual(['pause', 'resume'])
    decide(0)
    await settled()
    nextTurn()
    expect([answered, events]).toEqual([[1], ['pause', 'resume', 'end']])
  })
})

describe('a command that is worked out in steps', () => {
  /** Steps that each take a whole turn. */
  function stepping(count: number, outcome: () => Outcome | Promise<Outcome>) {
    const told = { steps: 0, isTidied: false }
    const rigged = rig({
      *STOP(): Steps<Outcome | Promise<Outcome>> {
        try {
          for (; told.steps < count; told.steps++) {
            rigged.clock.advance(LONG_MS)
            yield
          }
          return outcome()
        } finally {
          told.isTidied = true
        }
      },
    })
    return { ...rigged, told }
  }

  it('goes on in later turns, and those after it wait', () => {
    const { reader, told, events, answered, nextTurn } = stepping(3, () => 0)
    reader.data(join(command.stop(1, 7), command.nop(2)))
    expect(events).toEqual(['pause'])
    nextTurn()
    expect([told.steps, answered]).toEqual([1, []])
    nextTurn()
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2],
      ['pause', 'resume'],
    ])
  })

  it('may leave the decision to a promise', async () => {
    const { promise, decide } = decision<Outcome>()
    const { reader, events, answered, nextTurn } = stepping(1, () => promise)
    reader.data(join(command.stop(1, 7), command.nop(2)))
    nextTurn()
    nextTurn()
    expect([answered, events]).toEqual([[], ['pause']])
    decide(0)
    await settled()
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2],
      ['pause', 'resume'],
    ])
  })

  it('ends where it is when the connection is gone, and tidies up', () => {
    const { reader, told, answered, nextTurn, leave } = stepping(9, () => 0)
    reader.data(command.stop(1, 7))
    nextTurn()
    expect(told.isTidied).toBe(false)
    leave()
    nextTurn()
    expect([told.isTidied, answered]).toEqual([true, []])
  })
})

describe('a command that is answered alone', () => {
  it('holds up those after it until its answer was made', () => {
    let answers = 0
    const { reader, events, answered, nextTurn } = rig({
      GET: () => ({ result: 0, alone: true, answer: () => void answers++ }),
    })
    reader.data(join(command.get(1, 7), command.nop(2)))
    expect([answers, events]).toEqual([0, ['pause']])
    nextTurn()
    expect(answers).toBe(1)
    nextTurn()
    expect([answered, events]).toEqual([
      [1, 2],
      ['pause', 'resume'],
    ])
  })
})

describe('AUTH', () => {
  it('holds up what was sent after it, which is handled with the rights that it gives', async () => {
    const { reader, state, login, events, answered, statuses, nextTurn } = rig({ STOP: () => 0 })
    state.isAuthenticated = false
    reader.data(join(command.stop(1, 7), command.auth(2, 'password', new Uint8Array()), command.stop(3, 7)))
    nextTurn()
    expect([answered, statuses, events]).toEqual([[1], [status.NOT_AUTHENTICATED], ['pause']])
    login.decide()
    await settled()
    nextTurn()
    expect([answered, statuses.slice(1), events]).toEqual([
      [1, 2, 3],
      [0, 0],
      ['pause', 'resume'],
    ])
  })
})

describe('WRAP', () => {
  it('ends the connection if bytes come before its response, and so does not pause the link', () => {
    const { reader, events } = rig()
    reader.data(command.wrap(1, 'deflate'))
    expect(events).toEqual(['wrap'])
    reader.data(command.nop(2))
    expect(events).toEqual(['wrap', 'fail: bytes after a WRAP before its response'])
  })

  it('ends the connection if bytes came with it', () => {
    const { reader, events } = rig()
    reader.data(join(command.wrap(1, 'deflate'), command.nop(2)))
    expect(events).toEqual(['fail: bytes after a WRAP before its response'])
  })

  it('finds the link flowing after it has waited for its turn, and nothing resumes it before the layer is there', () => {
    const { reader, state, events, answered, spendTurn, nextTurn } = rig()
    spendTurn()
    reader.data(command.wrap(1, 'tls'))
    nextTurn()
    expect(events).toEqual(['pause', 'resume', 'wrap'])
    reader.resume()
    state.isWrapping = false
    reader.resume()
    reader.data(command.nop(2))
    nextTurn()
    expect([answered, events]).toEqual([[2], ['pause', 'resume', 'wrap']])
  })
})

describe('commands without a response', () => {
  it('hold up those after them when there are too many, until the disk has them', () => {
    const { reader, responses, events, answered, nextTurn, persist } = rig()
    reader.data(commits(1, MAX_UNANSWERED - 1))
    expect([responses.unanswered, events]).toEqual([MAX_UNANSWERED - 1, []])
    reader.data(commits(MAX_UNANSWERED, 10))
    expect([responses.unanswered, events]).toEqual([MAX_UNANSWERED, ['pause']])
    nextTurn()
    expect([answered.length, events]).toEqual([0, ['pause']])
    persist()
    expect([responses.unanswered, events]).toEqual([9, ['pause', 'resume']])
    persist()
    expect(answered).toEqual(Array.from({ length: MAX_UNANSWERED + 9 }, (_, index) => index + 1))
  })

  it('keep the connection until the disk has them, when the peer sends no more', () => {
    const { reader, events, answered, persist } = rig()
    reader.data(commits(1, 5))
    reader.finished()
    expect([answered, events]).toEqual([[], []])
    persist()
    expect([answered, events]).toEqual([[1, 2, 3, 4, 5], ['end']])
  })

  it('hold up those after them when too many have effects that have not ended', () => {
    let started = 0
    const { reader, responses, events, nextTurn } = rig({
      STOP: () => ({ result: 0, onSent: () => void started++ }),
    })
    const stops = Array.from({ length: MAX_EFFECTS + 8 }, (_, index) => command.stop(index + 1, 7))
    reader.data(join(...stops))
    expect([responses.effects, events]).toEqual([MAX_EFFECTS, ['pause']])
    nextTurn()
    nextTurn()
    expect([started, events]).toEqual([MAX_EFFECTS + 8, ['pause', 'resume']])
  })
})
