/**
 * What may be there after a conversation was cut: judged from what the consumer asked, what came before and after the cut,
 * and what the server shows of the channel. Knows the script of `cuts.ts` and nothing of how it was hurt.
 */
import { type } from '../support/bytes.ts'
import type { Received } from '../support/raw-peer.ts'
import type { Json } from '../support/records.ts'
import type { ValueMessage } from '../support/seat.ts'

export interface Facts {
  /** What was asked, by its label, with the seq. `commit N` and `through N` carry their transaction id. */
  readonly asked: Map<string, number>
  /** Numbers that were measured once the consumer had reason to expect them; `after`: those since the cut. */
  readonly sent: { readonly a: number[]; readonly b: number[] }
  /** What came on the connection that was hurt, and on the one that took the channel up. */
  readonly first: readonly Received[]
  readonly second: readonly Received[]
  /** Controls that were begun. */
  readonly runs: number
}

export interface Counts {
  /** Values with an id of their own. */
  readonly delivered: number
  /** Of those, how many came twice. */
  readonly again: number
}

/** `row`: the channel in `producer.channels` after the cut, undefined if there is none. Throws at what must not be. */
export function judge(facts: Facts, row: Json): Counts {
  const deed = (label: string) => deedOf(facts, label)
  demand(row !== undefined || !deed('define').answered, 'the channel that was answered is gone')
  demand(row === undefined || deed('define').asked, 'there is a channel that nobody asked for')
  const bindings: Json[] = row?.bindings ?? []
  const a = bindings.some(({ name, mode }) => name === 'test.a' && mode === 'subscribe')
  const b = bindings.some(({ name, mode }) => name === 'test.b' && mode === 'buffer')
  demand(bindings.length === Number(a) + Number(b), `bindings of nothing: ${JSON.stringify(bindings)}`)
  demand(a ? deed('subscribe a').asked : !deed('subscribe a').answered, `SUBSCRIBE a, and ${a ? 'a' : 'no'} binding`)
  if (b) demand(deed('buffer b').asked && !deed('stop b').answered, 'b is bound')
  else demand(deed('stop b').asked || !deed('buffer b').answered, 'the binding of b is gone')

  const first = queued(facts.first)
  const second = queued(facts.second)
  const all = [...first, ...second]
  checkIds(all)
  const numbers = new Map(all.filter(isNumber).map((value) => [value.value.readUInt32BE(0), value.transaction]))
  const sentA = new Set(facts.sent.a)
  const sentB = new Set(facts.sent.b)
  for (const number of numbers.keys()) {
    demand(sentA.has(number) || sentB.has(number), `unexpected: ${number} was never sent`)
  }
  checkControl(facts, new Set(all.filter((value) => !isNumber(value)).map(({ transaction }) => transaction)).size)
  checkSecond(facts, first, second)

  const again = new Set(second.map(({ transaction }) => transaction))
  const come = new Set(second.filter(isNumber).map((value) => value.value.readUInt32BE(0)))
  const mayBeCommitted = commits(facts, 'asked')
  const expected = [...(a ? sentA : []), ...(b ? sentB : [])]
  for (const number of expected) {
    const transaction = numbers.get(number)
    demand(transaction !== undefined, `lost: ${number} never came`)
    demand(come.has(number) || mayBeCommitted(transaction as number), `lost: ${number} did not come again`)
  }
  if (!a) for (const number of sentA) demand(!come.has(number), `unexpected: ${number} of an id that is not bound`)
  // A STOP takes all or nothing.
  if (!b) for (const number of sentB) demand(!come.has(number), `unexpected: ${number} after STOP`)
  return { delivered: numbers.size, again: first.filter(({ transaction }) => again.has(transaction)).length }
}

/** An id is for one value, byte for byte, and a value has one id. */
function checkIds(values: readonly ValueMessage[]): void {
  const ids = new Map<number, string>()
  const owners = new Map<string, Set<number>>()
  for (const { transaction, bytes } of values) {
    const text = bytes.toString('hex')
    demand((ids.get(transaction) ?? text) === text, `reused: the id ${transaction} came with two values`)
    ids.set(transaction, text)
    // Everything but the id itself.
    const value = text.slice(0, 8) + text.slice(24)
    owners.set(value, (owners.get(value) ?? new Set()).add(transaction))
    demand((owners.get(value)?.size ?? 0) <= 1, `unexpected: a value came under two ids: ${text}`)
  }
}

function checkControl(facts: Facts, results: number): void {
  const { asked, answered } = deedOf(facts, 'execute')
  demand(facts.runs <= Number(asked), `the control ran ${facts.runs} times`)
  demand(!answered || facts.runs === 1, 'EXECUTE was answered, and its control did not run')
  demand(results === facts.runs, `${results} results of a control that ran ${facts.runs} times`)
}

/** What comes again is in order, was not committed, and of a COMMIT `through` all or nothing. */
function checkSecond(facts: Facts, first: readonly ValueMessage[], second: readonly ValueMessage[]): void {
  const ids = second.map(({ transaction }) => transaction)
  demand(
    ids.every((id, at) => at === 0 || id > (ids[at - 1] as number)),
    `not in order: ${ids}`,
  )
  const committed = commits(facts, 'answered')
  for (const id of ids) demand(!committed(id), `unexpected: ${id} came again after its COMMIT was answered`)
  const mayBeCommitted = commits(facts, 'asked')
  for (const { transaction: id } of first.filter((value) => !isNumber(value))) {
    demand(ids.includes(id) || mayBeCommitted(id), 'lost: the result of the control did not come again')
  }
  for (const label of facts.asked.keys()) {
    if (!label.startsWith('through ') || deedOf(facts, label).answered) continue
    const last = Number(label.slice('through '.length))
    const open = first.filter(({ transaction }) => transaction <= last && !committed(transaction))
    const back = open.filter(({ transaction }) => ids.includes(transaction)).length
    demand(back === 0 || back === open.length, `half a COMMIT: ${back} of ${open.length} came again`)
  }
}

/** Whether a transaction id is covered by a COMMIT that was asked, or answered. */
function commits(facts: Facts, how: 'asked' | 'answered'): (transaction: number) => boolean {
  const single = new Set<number>()
  let through = 0
  for (const label of facts.asked.keys()) {
    const [word, id] = label.split(' ')
    if (!deedOf(facts, label)[how]) continue
    if (word === 'commit') single.add(Number(id))
    if (word === 'through') through = Math.max(through, Number(id))
  }
  return (transaction) => transaction <= through || single.has(transaction)
}

function deedOf({ asked, first }: Facts, label: string): { readonly asked: boolean; readonly answered: boolean } {
  const seq = asked.get(label)
  if (seq === undefined) return { asked: false, answered: false }
  const responses = first.filter((message) => message.kind === 'response' && message.seq === seq)
  demand(responses.length <= 1, `${label} was answered ${responses.length} times`)
  return { asked: true, answered: responses.length === 1 }
}

/** Entries of the queue. Answers and other messages are not its business, but there may be no GAP. */
function queued(log: readonly Received[]): ValueMessage[] {
  return log.filter((message): message is ValueMessage => {
    demand(message.kind !== 'gap', 'a GAP, and nothing was dropped')
    return message.kind === 'value' && message.transaction > 0
  })
}

const isNumber = (value: ValueMessage): boolean => value.type === type.uint32

function demand(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}
