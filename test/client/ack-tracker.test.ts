import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AckTracker, type DueCommits } from '../../client/ack-tracker.ts'

/**
 * A channel and its consumer, each as simple as can be: the producer sends everything uncommitted again on each connection,
 * in its order, and `through` commits only what it has sent on this one [MON 2].
 */
class Model {
  readonly acks: AckTracker
  readonly #isExplicit: boolean
  /** Ids with what they are: a result is handled as soon as it comes. */
  readonly #given = new Map<number, { readonly isResult: boolean }>()
  readonly #committed = new Set<number>()
  readonly #handled = new Set<number>()
  readonly #handedOut = new Set<number>()
  #lastId = 0
  #isConnected = true
  #sentOnThis = new Set<number>()
  /** On their way to the consumer, and to the producer. */
  #values: number[] = []
  #commands: Command[] = []
  #inbox: number[] = []
  /** COMMITs of one value that the consumer sends itself, on each connection until they are answered. */
  readonly #own = new Set<number>()

  constructor(isExplicit: boolean) {
    this.#isExplicit = isExplicit
    this.acks = new AckTracker(0, isExplicit)
  }

  /** A hole in the ids means nothing. */
  append(hole: number, isResult: boolean): void {
    this.#lastId += 1 + hole
    this.#given.set(this.#lastId, { isResult })
  }

  send(count: number): void {
    if (!this.#isConnected) return
    const unsent = [...this.#given.keys()].filter((id) => !this.#committed.has(id) && !this.#sentOnThis.has(id))
    for (const id of unsent.slice(0, count)) {
      this.#sentOnThis.add(id)
      this.#values.push(id)
    }
  }

  arrive(count: number): void {
    for (const id of this.#values.splice(0, count)) {
      if (!this.acks.received(id)) continue
      if (this.#handedOut.has(id)) throw new Error(`${id} was handed out twice`)
      this.#handedOut.add(id)
      if (this.#given.get(id)?.isResult && !this.#isExplicit) {
        this.#handled.add(id)
        this.acks.handledOutOfOrder(id)
      } else this.#inbox.push(id)
    }
  }

  handle(count: number): void {
    for (const id of this.#inbox.splice(0, count)) {
      this.#handled.add(id)
      if (this.#isExplicit) this.acks.committed(id)
      else this.acks.handled(id)
    }
  }

  skip(): void {
    for (const id of this.#inbox.splice(0, 1)) if (!this.#isExplicit) this.acks.skipped(id)
  }

  /** The program commits one of those that it has had, perhaps again; `isOwn`: by a COMMIT of its own. */
  commitOne(choice: number, isOwn: boolean): void {
    const id = [...this.#handedOut][choice % Math.max(1, this.#handedOut.size)]
    // In a loop that commits by itself, values are committed in their order.
    if (id === undefined || !this.#isExplicit) return
    this.#handled.add(id)
    this.#inbox = this.#inbox.filter((waiting) => waiting !== id)
    if (!isOwn) this.acks.committed(id)
    else {
      this.acks.committing(id)
      this.#own.add(id)
      if (this.#isConnected) this.#commands.push({ singles: [id], through: 0, isOwn })
    }
  }

  /** The consumer itself commits everything up to one of those that it has: that is as if it had handled them. */
  commitThrough(choice: number): void {
    const id = [...this.#handedOut][choice % Math.max(1, this.#handedOut.size)]
    if (id === undefined || !this.#isConnected || !this.#sentOnThis.has(id) || this.#values.includes(id)) return
    for (const handedOut of this.#handedOut) if (handedOut <= id) this.#handled.add(handedOut)
    this.acks.committingThrough(id)
    this.#inbox = this.#inbox.filter((waiting) => !this.#isExplicit || waiting > id)
    this.#commands.push({ singles: [], through: id })
  }

  commit(): boolean {
    const due = this.acks.takeDue()
    // Without a connection it is lost at once.
    if (due && this.#isConnected) this.#commands.push(due)
    return due !== undefined
  }

  /** `isAnswered`: the answer arrives, too. */
  store(count: number, isAnswered: boolean): void {
    for (const command of this.#commands.splice(0, count)) {
      const { singles, through, isOwn } = command
      for (const id of singles) this.#stored(id)
      for (const id of this.#sentOnThis) if (id <= through) this.#stored(id)
      if (!isAnswered) continue
      if (isOwn) for (const id of singles) this.#own.delete(id)
      else this.acks.stored(command)
    }
  }

  lose(): void {
    this.#isConnected = false
    this.#commands = []
    this.#values = []
  }

  connect(): void {
    this.lose()
    this.#isConnected = true
    this.#sentOnThis = new Set()
    this.acks.reconnected()
    for (const id of this.#own) this.#commands.push({ singles: [id], through: 0, isOwn: true })
  }

  /** All comes that there is, all is handled, and nothing is lost any more. */
  finish(): void {
    if (!this.#isConnected) this.connect()
    const all = this.#given.size
    this.send(all)
    this.arrive(all)
    this.handle(all)
    do this.store(Number.POSITIVE_INFINITY, true)
    while (this.commit())
    const sorted = (ids: Iterable<number>) => [...ids].sort((a, b) => a - b)
    expect(sorted(this.#handedOut)).toEqual([...this.#given.keys()])
    expect(sorted(this.#committed)).toEqual(sorted(this.#handled))
  }

  #stored(id: number): void {
    if (!this.#handled.has(id)) throw new Error(`${id} was committed and not handled`)
    this.#committed.add(id)
  }
}

/** `isOwn`: the tracker hears nothing of the answer. */
type Command = DueCommits & { readonly isOwn?: boolean }

const steps: Readonly<Record<string, (model: Model, a: number, b: number) => void>> = {
  append: (model, hole, kind) => model.append(hole, kind === 0),
  send: (model, count) => model.send(count),
  arrive: (model, count) => model.arrive(count),
  handle: (model, count) => model.handle(count),
  commit: (model) => model.commit(),
  store: (model, count, kind) => model.store(count, kind !== 0),
  skip: (model) => model.skip(),
  commitOne: (model, kind, choice) => model.commitOne(choice, kind === 0),
  commitThrough: (model, _, choice) => model.commitThrough(choice),
  lose: (model) => model.lose(),
  connect: (model) => model.connect(),
}
const often = ['append', 'send', 'arrive', 'handle', 'commit', 'store']
const step = fc.tuple(
  fc.constantFrom(...often, ...often, ...Object.keys(steps)),
  fc.nat({ max: 4 }),
  fc.nat({ max: 9 }),
)

test.each([
  ['what was handled', false],
  ['what the program has committed', true],
])('over whatever is lost, each is handed out once, and %s is committed, and nothing else', (_, isExplicit) => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 5, maxLength: 80, size: 'max' }), (taken) => {
      const model = new Model(isExplicit)
      for (const [name, a, b] of taken) steps[name]?.(model, a, b)
      model.finish()
    }),
    { numRuns: 3000 },
  )
})

describe('acknowledgements', () => {
  function arrivedAll(acks: AckTracker, ...ids: readonly number[]) {
    return ids.map((id) => acks.received(id))
  }

  test('commit everything that was handled with one COMMIT, once', () => {
    const acks = new AckTracker()
    expect(arrivedAll(acks, 3, 4, 9)).toEqual([true, true, true])
    acks.handled(3)
    acks.handled(4)
    expect(acks.takeDue()).toEqual({ singles: [], through: 4 })
    expect(acks.takeDue()).toBeUndefined()
  })

  test('commit one by one after a value that nobody wanted', () => {
    const acks = new AckTracker()
    arrivedAll(acks, 1, 2, 3, 4)
    acks.handled(1)
    acks.skipped(2)
    acks.handled(3)
    acks.handled(4)
    expect(acks.takeDue()).toEqual({ singles: [3, 4], through: 1 })
  })

  test('use `through` again when the consumer has committed what nobody wanted, and not before', () => {
    const acks = new AckTracker()
    arrivedAll(acks, 1, 2, 3, 4, 5)
    acks.skipped(1)
    acks.skipped(3)
    acks.committingThrough(2)
    acks.handled(4)
    expect(acks.takeDue()).toEqual({ singles: [4], through: 0 })
    acks.committingThrough(3)
    acks.handled(5)
    expect(acks.takeDue()).toEqual({ singles: [], through: 5 })
  })

  test('take no value for committed that came only after its COMMIT', () => {
    const acks = new AckTracker()
    arrivedAll(acks, 1, 2)
    acks.committingThrough(1_000)
    arrivedAll(acks, 3, 4)
    expect(acks.takeDue()).toBeUndefined()
    acks.handled(3)
    expect(acks.takeDue()).toEqual({ singles: [], through: 3 })
  })

  test('commit a result at once that is handled before what arrived earlier', () => {
    const acks = new AckTracker()
    arrivedAll(acks, 1, 2)
    acks.handledOutOfOrder(2)
    expect(acks.takeDue()).toEqual({ singles: [2], through: 0 })
    acks.handled(1)
    expect(acks.takeDue()).toEqual({ singles: [], through: 1 })
  })

  test('take what an earlier run has handled for a repeat, and commit it when it comes', () => {
    const acks = new AckTracker(5)
    expect(acks.takeDue()).toBeUndefined()
    expect(arrivedAll(acks, 3, 5, 6)).toEqual([false, false, true])
    expect(acks.takeDue()).toEqual({ singles: [], through: 5 })
  })

  test('ignore what is not kept: it is new each time, and never committed', () => {
    const acks = new AckTracker(5)
    expect(arrivedAll(acks, 0, 0)).toEqual([true, true])
    acks.handledOutOfOrder(0)
    acks.handled(0)
    acks.skipped(0)
    expect(acks.takeDue()).toBeUndefined()
    acks.received(6)
    acks.handled(6)
    expect(acks.takeDue()).toEqual({ singles: [], through: 6 })
  })

  test('of each value that the program commits in its order go as one', () => {
    const acks = new AckTracker(0, true)
    arrivedAll(acks, 3, 4, 9)
    acks.committed(3)
    acks.committed(4)
    expect(acks.takeDue()).toEqual({ singles: [], through: 4 })
    acks.committed(4)
    acks.committed(8)
    expect(acks.takeDue()).toBeUndefined()
  })

  test('of values that the program commits out of order go one by one, until nothing before them is left', () => {
    const acks = new AckTracker(0, true)
    arrivedAll(acks, 1, 2, 3, 4, 5)
    acks.committed(3)
    acks.committed(2)
    expect(acks.takeDue()).toEqual({ singles: [3, 2], through: 0 })
    acks.committed(1)
    expect(acks.takeDue()).toEqual({ singles: [], through: 1 })
    acks.committed(4)
    expect(acks.takeDue()).toEqual({ singles: [], through: 4 })
  })

  test('cover nothing that the program has left uncommitted, also when it comes again', () => {
    const acks = new AckTracker(0, true)
    arrivedAll(acks, 1, 2, 3)
    acks.committed(2)
    acks.committed(3)
    expect(acks.takeDue()).toEqual({ singles: [2, 3], through: 0 })
    acks.reconnected()
    expect(arrivedAll(acks, 1, 2, 3)).toEqual([false, false, false])
    expect(acks.takeDue()).toEqual({ singles: [2, 3], through: 0 })
    acks.stored({ singles: [2, 3], through: 0 })
    acks.committing(1)
    arrivedAll(acks, 4)
    acks.committed(4)
    expect(acks.takeDue()).toEqual({ singles: [], through: 4 })
  })

  test('send no more than 4,096 single COMMITs at once', () => {
    const acks = new AckTracker()
    for (let id = 1; id <= 5000; id++) {
      acks.received(id)
      if (id === 1) acks.skipped(id)
      else acks.handled(id)
    }
    expect(acks.takeDue()?.singles).toHaveLength(4096)
    expect(acks.takeDue()?.singles).toEqual(Array.from({ length: 903 }, (_, i) => 4098 + i))
    expect(acks.takeDue()).toBeUndefined()
  })
})
