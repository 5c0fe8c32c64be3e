/** The recorded broker as answers to whatever a console asks: the recorded bytes, with the sequence of the question. */
import { decodeBody } from '../../../../protocol/qmf/messages.ts'
import type { ClassKey, QmfMessage, Schema, SchemaLookup, TableSchema } from '../../../../protocol/qmf/types.ts'
import { keyText } from '../../../../server/wings/qmf/discovery.ts'
import { capturedTransfers } from '../../../support/qmf/capture.ts'

const recording = capturedTransfers()
const unknown: SchemaLookup = { schema: () => undefined, method: () => undefined }
const schemas = new Map<string, Schema>()
for (const { from, body } of recording) {
  const [message] = from === 'broker' ? decodeBody(body, unknown).messages : []
  if (message?.op === 's') schemas.set(keyText(message.schema.key), message.schema)
}

export const recordedSchemas: readonly Schema[] = [...schemas.values()]
export const recordedKnown: SchemaLookup = { schema: (key) => schemas.get(keyText(key)), method: () => undefined }

export function schemaOf<K extends Schema['kind']>(kind: K, className: string): Schema & { kind: K } {
  const schema = recordedSchemas.find((candidate) => candidate.key.className === className && candidate.kind === kind)
  if (schema === undefined) throw new Error(`no ${className} was recorded`)
  return schema as Schema & { kind: K }
}

export const tableOf = (className: string): TableSchema => schemaOf('table', className)

const textOf = (key: ClassKey) => keyText(key).replaceAll('\0', ' ')

/** What a request is about, whatever its sequence; of G only the class. */
function subject(message: QmfMessage): string {
  switch (message.op) {
    case 'Q':
      return `Q ${message.packageName}`
    case 'S':
      return `S ${textOf(message.key)}`
    case 'G':
      return `G ${message.query.get('_class')}`
    case 'M':
      return `M ${message.method} ${message.arguments.filter((argument) => typeof argument !== 'object')}`
    default:
      return message.op
  }
}

const header = (op: string, sequence: number): string => {
  const bytes = Buffer.from(`AM2${op}0000`, 'latin1')
  bytes.writeUInt32BE(sequence, 4)
  return bytes.toString('latin1')
}

const answers = new Map<string, readonly [asked: number, bodies: readonly Uint8Array[]]>()
for (const { from, body } of recording) {
  const [request] = from === 'client' ? decodeBody(body, recordedKnown).messages : []
  if (request === undefined || answers.has(subject(request))) continue
  const bodies = recording
    .filter((answer) => answer.from === 'broker' && answer.destination === 'rdest')
    .map((answer) => answer.body)
    .filter((answer) => Buffer.from(answer).readUInt32BE(4) === request.sequence)
  answers.set(subject(request), [request.sequence, bodies])
}

/** The bodies that were answered; z "OK" where nothing of the kind was asked. */
export function recordedAnswers(request: QmfMessage): Uint8Array[] {
  const [asked, bodies] = answers.get(subject(request)) ?? [
    0,
    [Buffer.from(`${header('z', 0)}\0\0\0\0\x02OK`, 'latin1')],
  ]
  return bodies.map((body) => {
    let text = Buffer.from(body).toString('latin1')
    for (const op of 'bpqsgmz') text = text.replaceAll(header(op, asked), header(op, request.sequence))
    return new Uint8Array(Buffer.from(text, 'latin1'))
  })
}

/** What was broadcast, in order. */
export const recordedBroadcasts = recording.filter(
  ({ from, destination }) => from === 'broker' && destination === 'tdest',
)
