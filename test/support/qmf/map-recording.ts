/**
 * What the broker of the recording of QMF v2 answers and tells: the recorded headers and bodies, with the correlation id
 * of the question, or the sequence where it was asked for by v1. Read by hand, as far as requests have to be told apart.
 */
import { capturedChunks } from './capture.ts'
import { message, requestsIn } from './recording.ts'
import { type Came, code, replyKeyOf, routingKeyOf, str8, str16, u32, WireReader } from './wire.ts'

export interface MapRequest {
  /** `locate`, `query broker OBJECT queue`, `call broker echo`; by v1 as `Request` has it. */
  readonly text: string
  readonly correlation: Buffer
  readonly replyKey: string
  /** Of a request by v1. */
  readonly sequence?: number
}
export interface MapAnswer {
  readonly exchange: string
  readonly body: Buffer
  /** Message-properties from the packing flags on; undefined for those of v1. */
  readonly properties?: Buffer
}

interface Transfer {
  readonly from: 'client' | 'broker'
  readonly destination: string
  readonly header: Buffer
  readonly body: Buffer
}

/** All of what a message-properties struct has, as raw bytes by their bits. */
const SIZES = [8, 16, -2, -2, -1, -1, -2, -2, -4] as const
const CORRELATION = 2
const APP_ID = 7
const HEADERS = 8

function fieldsOf(header: Buffer): Map<number, Buffer> {
  const fields = new Map<number, Buffer>()
  for (let at = 0; at + 6 <= header.length; at += 4 + header.readUInt32BE(at)) {
    if (header.readUInt16BE(at + 4) !== 0x0403) continue
    const flags = header.readUInt16LE(at + 6)
    let next = at + 8
    for (const [bit, size] of SIZES.entries()) {
      if ((flags & (1 << bit)) === 0) continue
      const bytes = size > 0 ? size : -size + header.readUIntBE(next, -size)
      fields.set(bit, header.subarray(next, next + bytes))
      next += bytes
    }
  }
  return fields
}

function propertiesOf(fields: ReadonlyMap<number, Buffer>): Buffer {
  const flags = Buffer.alloc(2)
  flags.writeUInt16LE([...fields.keys()].reduce((all, bit) => all | (1 << bit), 0))
  return Buffer.concat([flags, ...[...fields].sort(([a], [b]) => a - b).map(([, bytes]) => bytes)])
}

const transfers: readonly Transfer[] = (() => {
  const readers = { client: new WireReader(), broker: new WireReader() }
  return capturedChunks('v2-console').flatMap(({ from, bytes }) => {
    const came: Came[] = [...readers[from].push(bytes)]
    return came
      .filter((one) => !one.isControl && one.code === code.transfer)
      .map(({ args, header, body }) => ({ from, destination: args.str8(), header, body }))
  })
})()

/** The text after a key of a map, of the types 90 and 95. */
function textAfter(body: Buffer, key: string): string {
  const at = body.indexOf(Buffer.concat([str8(key)]))
  if (at < 0) return ''
  const start = at + 1 + key.length + 1
  return body.toString('utf8', start + 2, start + 2 + body.readUInt16BE(start))
}

/** Undefined for what a broker drops without a word [QMF v2]. */
export function mapRequestOf(to: string, header: Buffer, body: Buffer): MapRequest | undefined {
  const fields = fieldsOf(header)
  const correlation = fields.get(CORRELATION) ?? Buffer.alloc(0)
  if (!fields.has(APP_ID)) {
    const replyKey = replyKeyOf(header) || replyKeyOf(header, 'qmf.default.direct')
    const [request] = body.toString('latin1', 0, 3) === 'AM2' ? requestsIn(body) : []
    if (request === undefined || replyKey === '' || to !== 'broker') return undefined
    return { text: request.text, correlation, replyKey, sequence: request.sequence }
  }
  const replyKey = replyKeyOf(header, 'qmf.default.direct')
  if (replyKey === '') return undefined
  const name = to.replace(/^apache.org:qpidd:.*/, 'broker')
  switch (textAfter(fields.get(HEADERS)!, 'qmf.opcode')) {
    case '_agent_locate_request':
      return { text: 'locate', correlation, replyKey }
    case '_query_request': {
      const what = [textAfter(body, '_what'), textAfter(body, '_class_name')].join(' ').trim()
      return { text: `query ${name} ${what}`, correlation, replyKey }
    }
    case '_method_request':
      return { text: `call ${name} ${textAfter(body, '_method_name')}`, correlation, replyKey }
    default:
      return undefined
  }
}

interface Recorded {
  readonly request: MapRequest
  readonly answers: readonly Transfer[]
}

const isMap = ({ header }: Transfer) => fieldsOf(header).has(APP_ID)
const ofBroker = transfers.filter(({ from }) => from === 'broker')

const recorded: readonly Recorded[] = transfers
  .filter(({ from }) => from === 'client')
  .flatMap((asked) => {
    const request = mapRequestOf(routingKeyOf(asked.header), asked.header, asked.body)
    if (request === undefined) return []
    const { sequence, correlation } = request
    const answers = ofBroker.filter((answer) => {
      if (sequence === undefined) return fieldsOf(answer.header).get(CORRELATION)?.equals(correlation) === true
      return !isMap(answer) && answer.body.readUInt32BE(4) === sequence
    })
    return [{ request, answers }]
  })

/** As it was answered first; OK, or an empty list, where it was not asked for or not answered. */
export function mapAnswersTo(request: MapRequest): MapAnswer[] {
  const { sequence } = request
  const found = recorded.find((one) => one.request.text === request.text && one.answers.length > 0)
  if (sequence !== undefined) {
    const bodies = found?.answers.map(({ body }) => withSequence(body, sequence)) ?? []
    const ok = message('z', sequence, u32(0), str8('OK'))
    return (bodies.length > 0 ? bodies : [ok]).map((body) => ({ exchange: 'amq.direct', body }))
  }
  if (request.text === `query ${AGENT} SCHEMA overheated`)
    return [likeAnswerTo(`query ${AGENT} SCHEMA pump`, request, OVERHEATED)]
  if (found === undefined) return request.text.startsWith('query broker') ? [emptyAnswer(request)] : []
  return found.answers.map((answer) => ({ ...answerOf(answer, request.correlation), body: answer.body }))
}

function withSequence(body: Buffer, sequence: number): Buffer {
  const copy = Buffer.from(body)
  const was = body.subarray(4, 8)
  for (let at = copy.indexOf('AM2'); at >= 0; at = copy.indexOf('AM2', at + 1)) {
    if (copy.subarray(at + 4, at + 8).equals(was) && at > 0) copy.writeUInt32BE(sequence, at + 4)
  }
  copy.writeUInt32BE(sequence, 4)
  return copy
}

function answerOf({ header }: Transfer, correlation: Buffer): Omit<MapAnswer, 'body'> {
  const fields = fieldsOf(header)
  if (fields.has(CORRELATION)) fields.set(CORRELATION, correlation)
  return { exchange: 'qmf.default.direct', properties: propertiesOf(fields) }
}

function emptyAnswer(request: MapRequest): MapAnswer {
  return likeAnswerTo('query broker OBJECT vhost', request, Buffer.concat([u32(4), u32(0)]))
}

/** With the properties of another answer, and a body that was not recorded. */
function likeAnswerTo(text: string, { correlation }: MapRequest, body: Buffer): MapAnswer {
  const like = recorded.find(({ request }) => request.text === text)!.answers[0]!
  return { ...answerOf(like, correlation), body }
}

/** The agent that was attached to the recorded broker. */
const AGENT = 'example.org:waterworks:east-2'
const sized = (count: number, ...items: readonly Buffer[]) => {
  const all = Buffer.concat(items)
  return Buffer.concat([u32(all.length + 4), u32(count), all])
}
const mapOf = (entries: Readonly<Record<string, Buffer>>): Buffer => {
  const items = Object.entries(entries).map(([key, value]) => Buffer.concat([str8(key), value]))
  return Buffer.concat([Buffer.from([0xa8]), sized(items.length, ...items)])
}
const textOf = (text: string) => Buffer.concat([Buffer.from([0x90]), str16(text)])
/** The schema of its event, for which the recorded console did not ask, as the agent writes that of its objects. */
const OVERHEATED = sized(
  1,
  mapOf({
    _schema_id: mapOf({
      _package_name: textOf('org.example.water'),
      _class_name: textOf('overheated'),
      _type: textOf('_event'),
      _hash: Buffer.from('48400a342936fb96a1a89c8da095ef373c', 'hex'),
    }),
    _properties: Buffer.concat([
      Buffer.from([0xa9]),
      sized(
        2,
        mapOf({ _name: textOf('name'), _type: textOf('TYPE_STRING') }),
        mapOf({ _name: textOf('celsius'), _type: textOf('TYPE_FLOAT') }),
      ),
    ]),
  }),
)

/** What was told unasked, in order. `n`: as the expected file counts transfers. */
export const mapBroadcasts = ofBroker.flatMap((one, at) => {
  const { header, body } = one
  if (!isMap(one) || fieldsOf(header).has(CORRELATION)) return []
  return [{ n: at + 1, routingKey: routingKeyOf(header), body, properties: propertiesOf(fieldsOf(header)) }]
})
/** Of the broker, or of the agent that was attached to it. */
export const mapHeartbeats = {
  broker: mapBroadcasts.find(({ routingKey }) => routingKey.includes('heartbeat.apache_org'))!,
  agent: mapBroadcasts.find(({ routingKey }) => routingKey.includes('heartbeat.example.org'))!,
}
