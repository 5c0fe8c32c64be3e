/** The scripts about producers below can fail, too: servers that are wrong in what they say of themselves and others [MON 9.13]. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { join, str, u32 } from '../support/bytes.ts'
import { type Mutation, startMutatingJson, startMutatingProxy } from './mutating-proxy.ts'
import { always, answering, isCapabilities, isValue, offering, resized, saying } from './mutations.ts'
import { type OwnServer, startOwnServer } from './own-server.ts'
import { describeOutcome } from './report.ts'
import { readScripts, type Script, type Way } from './script.ts'
import { type Outcome, Run } from './target.ts'

const MINUTES = 60_000
const [OK, INVALID, NO_SUCH_METRIC, NO_SUCH_CHANNEL, STRING] = [0, 6, 7, 9, 7]
const NAME = 'n1'

const scripts = readScripts(new URL('scripts/', import.meta.url))
let server: OwnServer
beforeAll(async () => {
  server = await startOwnServer()
})
afterAll(() => server.stop())

let users = 0
async function play(script: string, address: string, way: Way = 'tcp'): Promise<Outcome> {
  const found = scripts.find(({ name }) => name === script) as Script
  const run = await Run.begin(address, way, await server.users(`wrong${++users}`))
  return run.play({ ...found, needs: [] })
}

function expectNoticed(outcome: Outcome, says: string): void {
  expect(outcome.result, describeOutcome(outcome)).toBe('failed')
  expect(describeOutcome(outcome)).toContain(says)
}

/** A frame with other bytes in the place of the first that are so. */
function replaced(frame: Buffer, bytes: Uint8Array, instead: Uint8Array): Buffer {
  const at = frame.indexOf(bytes)
  if (at < 0) return frame
  return resized(Buffer.concat([frame.subarray(0, at), instead, frame.subarray(at + bytes.length)]))
}

const argument = (name: string, text: string): Uint8Array => join(str(name), u32(STRING), str(text))
const ARGUMENT = join(str('producer'), u32(STRING))

/** A producer that takes another argument instead of `producer`, or another text of it. */
function taking(instead: Uint8Array): (frame: Buffer) => Buffer {
  return (frame) => {
    const at = frame.indexOf(ARGUMENT)
    if (at < 0) return frame
    const text = at + ARGUMENT.length
    const end = text + 4 + ((frame.readUInt32BE(text) + 3) & ~3)
    return replaced(frame, frame.subarray(at, end), instead)
  }
}

const everything = taking(argument('producer', '*'))
const right: Mutation = always((frame) => frame)
const ofCapabilities = (change: (frame: Buffer) => Buffer): Mutation =>
  always((frame) => (isCapabilities(frame) ? change(frame) : frame))
const ofValues = (change: (frame: Buffer) => Buffer): Mutation =>
  always((frame) => (isValue(frame) ? change(frame) : frame))
const anotherName = (frame: Buffer): Buffer => replaced(frame, str(NAME), str('n2'))
const nameLast = (frame: Buffer): Buffer => {
  const [name, producer] = [argument('name', 'host.load.one'), argument('producer', NAME)]
  return replaced(frame, join(name, producer), join(producer, name))
}

interface Wrongly {
  readonly mutation?: Mutation
  /** What it understands instead of a command. */
  readonly command?: (frame: Buffer) => Buffer
}

/** What is wrong, the script that has to notice, and words of the step or its failure; none: nothing is wrong. */
const wrongs: readonly (readonly [string, Wrongly, string, string])[] = [
  ['nothing', {}, '9/producer-pattern', ''],
  ['itself before AUTH', { mutation: offering('producer', 'id n1') }, '3/producer-in-capabilities', 'no producer'],
  ['others before AUTH', { mutation: offering('below', 'id east') }, '3/producer-in-capabilities', 'offers A no below'],
  [
    'not itself after AUTH',
    { mutation: ofCapabilities((frame) => replaced(frame, str('producer'), str('produced'))) },
    '3/producer-in-capabilities',
    'offers B producer',
  ],
  ['itself twice', { mutation: offering('producer', 'id n1', 2) }, '3/producer-in-capabilities', 'two entries'],
  ['others without ids', { mutation: offering('below', 'east', 2) }, '3/producer-in-capabilities', 'an id, a blank'],
  ['two names of itself', { mutation: ofValues(anotherName) }, '9/producer-name-in-stats', '"name" STRING {producer}'],
  ['a label by an exact name', { command: everything }, '9/producer-own-name', 'DOUBLE'],
  [
    'no label by a pattern',
    { command: taking(argument('producer', NAME)) },
    '9/producer-pattern',
    '"producer" STRING {producer}',
  ],
  ['another label', { mutation: saying('producer', 'produced') }, '9/producer-pattern', '"producer" STRING'],
  ['another producer', { mutation: ofValues(anotherName) }, '9/producer-pattern', '"producer" STRING {producer}'],
  [
    'the producer before the name',
    { mutation: ofValues(nameLast) },
    '9/producer-pattern',
    '"name" STRING "host.load.one"',
  ],
  ['its own values for those of nobody', { command: everything }, '9/producer-of-nobody', 'ARRAY REC 00000000'],
  ['metrics of nobody', { mutation: answering(NO_SUCH_METRIC, OK, 3) }, '9/producer-of-nobody', '00000003 NO_SUCH'],
  ['events of nobody', { mutation: answering(NO_SUCH_METRIC, OK, 5) }, '9/producer-of-nobody', '00000005 NO_SUCH'],
  ['its own values for those to come', { command: everything }, '9/producer-may-come', 'RESPONSE 00000003 OK'],
  ['numbers as names', { mutation: answering(INVALID, OK, 1) }, '9/producer-is-text', '00000001 INVALID_ARGUMENT'],
  ['nine stars', { mutation: answering(INVALID, OK, 5) }, '9/producer-is-text', '00000005 INVALID_ARGUMENT'],
  ['any bytes', { mutation: answering(INVALID, OK, 1) }, '9/producer-is-utf-8', '00000001 INVALID_ARGUMENT'],
  ['opaques', { mutation: answering(INVALID, OK, 2) }, '9/producer-is-utf-8', '00000002 INVALID_ARGUMENT'],
  ['events of nobody else', { mutation: answering(OK, INVALID, 1) }, '9/producer-of-events', 'RESPONSE 00000001 OK'],
  ['lists of all', { mutation: answering(INVALID, OK, 2) }, '9/producer-of-lists', '00000002 INVALID_ARGUMENT'],
  ['a label that is an argument', { command: everything }, '9/producer-of-its-own', 'ARRAY REC 00000000'],
  ['its own controls', { command: taking(argument('match', '*')) }, '9/producer-controls', 'ARRAY REC 00000000'],
  [
    'controls that run here',
    { command: taking(argument('on_behalf_of', 'nobody')) },
    '10/producer-of-nobody',
    'RESPONSE 00000002 NO_SUCH_CONTROL',
  ],
  ['words without end', { mutation: answering(INVALID, OK, 3) }, '10/on-behalf-of', '00000003 INVALID_ARGUMENT'],
  [
    'rights of others',
    { mutation: answering(NO_SUCH_CHANNEL, OK, 1) },
    '10/on-behalf-of-changes-nothing',
    'RESPONSE 00000001 NO_SUCH_CHANNEL',
  ],
  [
    'another key for each actor',
    { mutation: answering(OK, INVALID, 2) },
    '10/on-behalf-of-changes-nothing',
    'RESPONSE 00000002 OK',
  ],
]

describe('the kit notices', () => {
  it.concurrent.for(wrongs)('%s', { timeout: MINUTES }, async ([, { mutation = right, command }, script, says]) => {
    const proxy = await startMutatingProxy(server.tcp, mutation, command && { command })
    const outcome = await play(script, proxy.address)
    await proxy.close()
    if (says === '') expect(outcome.result, describeOutcome(outcome)).toBe('ok')
    else expectNoticed(outcome, says)
  })

  it.concurrent.each([
    ['no word of itself', '"producer":', '"produced":', '3/producer-in-capabilities', 'login B'],
    ['others that are no list', '"below":[]', '"below":""', '3/producer-in-capabilities', 'login B'],
    ['another label', '"producer":"n1"', '"producer":"n2"', '9/producer-pattern', '"producer" STRING {producer}'],
  ] as const)('in JSON: %s', { timeout: MINUTES }, async (_, said, instead, script, says) => {
    const proxy = await startMutatingJson(server.ws, (text) => text.replace(said, instead))
    const outcome = await play(script, proxy.address, 'ws-json')
    await proxy.close()
    expectNoticed(outcome, says)
  })
})
