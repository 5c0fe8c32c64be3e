/**
 * The step `await`: asks `producer.channels` again and again until a counter of a channel is so much [MON 8.9], since some
 * things (a first measurement) are reported by nothing else.
 */
import { parsePattern } from './pattern.ts'
import type { Step } from './script.ts'
import { Failure, type Stage } from './stage.ts'
import { counters, expectedWords, sentWords } from './words.ts'
import { uint64 } from './xdr.ts'

const PAUSE_MS = 10
const ATTEMPTS = 500

const START =
  'LEN {asked} {zero} {_:u64} ARRAY REC 00000001 00000019 "channel" UINT32 {_:u32} "identity" STRING {_:str} ' +
  '"name" STRING {_:str} "url" STRING {_:str} "state" STRING {_:str} "durable" BOOLEAN {_:u32}'

export async function awaitLedger(stage: Stage, step: Extract<Step, { is: 'await' }>): Promise<void> {
  const { peer, field, count, orMore, channel } = step
  const id = channel === undefined ? 0 : stage.variables.get(channel)?.bytes.readUInt32BE(0)
  if (id === undefined) throw new Error(`{${channel}} holds nothing yet`)
  stage.keepText('channel-digits', String(id))
  stage.variables.set('awaited', { kind: 'u64', bytes: uint64(count) })
  if (orMore) stage.variables.set('too-few', { kind: 'u64', bytes: uint64(count - 1n) })
  const before = counters.slice(0, counters.indexOf(field)).map((counter) => `"${counter}" UINT64 {_:u64}`)
  const sought = expectation(
    `${START} ${before.join(' ')} "${field}" UINT64 ${orMore ? '{_:u64>too-few}' : '{awaited}'} {_:rest}`,
  )
  const any = expectation(`${START} ${before.join(' ')} "${field}" UINT64 {_:u64} {_:rest}`)
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const query = 'LEN QUERY fffffffc "producer.channels" 00000001 "channel" STRING {channel-digits}'
    stage.send(peer, parsePattern(query, sentWords))
    await stage.expect(peer, [expectation('LEN RESPONSE fffffffc OK {asked:id}')])
    if (await stage.isFirst(peer, sought, any)) return
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
  }
  throw new Failure(`"${field}" did not become ${count}${orMore ? ' or more' : ''}`, [sought])
}

function expectation(text: string) {
  return { text, parts: parsePattern(text, expectedWords) }
}
