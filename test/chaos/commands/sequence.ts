/** A sequence of commands: made by fast-check, or read from the text of one that failed; run, and drained at its end. */
import fc from 'fast-check'
import { command } from '../../support/bytes.ts'
import type { MemoryStore } from '../../support/memory-store/store.ts'
import type { ConnectionModel } from './model.ts'
import { fail } from './observe.ts'
import { inFlight, isEmpty } from './queue-model.ts'
import { users } from './stage.ts'
import { type Numbers, steps } from './steps.ts'
import * as verbs from './verbs.ts'
import { type Counts, Walk } from './walk.ts'

/** One command. Its text, `commit 0 4 9`, is all there is to it. */
export class Step implements fc.AsyncCommand<object, Walk> {
  readonly #name: string
  readonly #numbers: Numbers

  constructor(name: string, numbers: Numbers) {
    this.#name = name
    this.#numbers = numbers
  }

  static parse(text: string): Step {
    const [name = '', ...numbers] = text.trim().split(' ')
    const [first = 0, second = 0, third = 0] = numbers.map(Number)
    return new Step(name, [first, second, third])
  }

  check(): boolean {
    return true
  }

  async run(_: object, walk: Walk): Promise<void> {
    const step = steps[this.#name]
    if (step === undefined) throw new Error(`no command ${this.#name}`)
    await step[1](walk, this.#numbers)
  }

  toString(): string {
    return [this.#name, ...this.#numbers].join(' ')
  }
}

const number = fc.nat({ max: 255 })

function stepOf(name: string): fc.Arbitrary<Step> {
  return fc.tuple(number, number, number).map((numbers) => new Step(name, numbers))
}

/** Some of them are long: only what has gone on for a while has much to go wrong. */
export const MOST_COMMANDS = 140
export const sequences = fc.commands(
  [fc.oneof(...Object.entries(steps).map(([name, [weight]]) => ({ weight, arbitrary: stepOf(name) })))],
  { maxCommands: MOST_COMMANDS, size: 'max' },
)

/** Runs commands, and at the end everything that is left is delivered. */
export async function runSequence(
  ground: MemoryStore,
  counts: Counts,
  act: (walk: Walk) => Promise<void>,
): Promise<void> {
  const walk = await Walk.start(ground, counts)
  try {
    await act(walk)
    await drain(walk)
  } finally {
    await walk.stage.end()
  }
}

/** A list of commands as text, one per line. */
export function runText(ground: MemoryStore, counts: Counts, text: string): Promise<void> {
  const list = text.split(/[,\n]/).filter((line) => line.trim() !== '')
  return runSequence(ground, counts, async (walk) => {
    for (const line of list) await Step.parse(line).run({}, walk)
  })
}

/** Everybody comes back and takes what there is. */
async function drain(walk: Walk): Promise<void> {
  await walk.hold(false)
  const { model } = walk
  for (const index of model.connections.keys()) {
    if ((model.connections[index] as ConnectionModel).alive) await walk.disconnect(index)
  }
  for (const user of users.keys()) {
    const index = await walk.connect(user)
    for (const channel of model.of(user)) {
      if (!model.state.channels.has(channel.key)) continue
      const id = model.idOf(channel)
      await walk.command(
        index,
        (seq) => command.setChannel(seq, id),
        () => verbs.setChannel(model, index, id),
      )
      await empty(walk, index)
    }
  }
}

async function empty(walk: Walk, index: number): Promise<void> {
  const { model } = walk
  const channel = model.channel((model.connections[index] as ConnectionModel).channel)
  const { queue } = channel
  for (const [metric, mode] of [...channel.bindings]) {
    if (mode !== 'buffer') continue
    await walk.command(
      index,
      (seq) => command.get(seq, metric, 0),
      () => verbs.get(model, index, metric, 0),
    )
  }
  for (let sent = inFlight(queue); sent.length > 0; sent = inFlight(queue)) {
    const last = sent.at(-1)?.id ?? 0
    const make = (seq: number): Uint8Array => command.commitThrough(seq, last)
    await walk.command(index, make, () => verbs.committed(model, index, last, true))
  }
  if (!queue.loose && !isEmpty(queue)) fail(`channel ${model.idOf(channel)} is drained and not empty`)
  await checkLosses(walk, index)
}

/** Everything that a limit dropped was reported by a GAP. */
async function checkLosses(walk: Walk, index: number): Promise<void> {
  const { model, stage } = walk
  const channel = model.channel((model.connections[index] as ConnectionModel).channel)
  const { queue } = channel
  if (!queue.loose) return
  const listed = (await stage.channels()).find((one) => one.channel === model.idOf(channel))
  if (listed.queued + listed.in_flight !== 0) fail(`channel ${listed.channel} is drained and not empty`)
  const dropped = listed.dropped.overflow + listed.dropped.expired
  if (!queue.untold && queue.reported !== dropped)
    fail(`${dropped} values were dropped, GAPs told of ${queue.reported}`)
}
