/**
 * One message -> its bytes, for a console and for an agent. Several may be put behind each other into one AMQP body (a `z`
 * and its like stand alone). The text of a reply is always str16: what qpidd does otherwise for one status is not copied.
 */

import { writeFieldTable } from '../amqp/field-table.ts'
import { Writer } from '../amqp/writer.ts'
import { ProtocolError } from '../errors.ts'
import { inputs, outputs } from './arguments.ts'
import { writeObjectHeader, writeProperties, writeValues } from './object.ts'
import { writeObjectId } from './object-id.ts'
import { writeClassKey, writeKind, writeSchema } from './schema.ts'
import { type ClassKey, type Known, type QmfMessage, QmfStatus, type SchemaMethod, type TableSchema } from './types.ts'
import { writeUuid } from './values.ts'

/**
 * Throws ProtocolError: UNKNOWN_MESSAGE where `known` lacks the class or the method, others where a value is not what the
 * schema asks for (BAD_TYPE, BAD_COUNT, BAD_NUMBER, BAD_NAME, TOO_LONG).
 */
export function encodeMessage(message: QmfMessage, known: Known): Uint8Array {
  const writer = new Writer()
  for (const letter of `AM2${message.op}`) writer.uint8(letter.charCodeAt(0))
  writer.uint32(message.sequence)
  writeBody(writer, message, known)
  return writer.bytes()
}

function writeBody(writer: Writer, message: QmfMessage, known: Known): void {
  switch (message.op) {
    case 'B':
    case 'P':
    case 'x':
      break
    case 'b':
      writeUuid(writer, message.brokerId)
      break
    case 'p':
    case 'Q':
      writer.str8(message.packageName)
      break
    case 'q':
      writeKind(writer, message.kind)
      writeClassKey(writer, message.key)
      break
    case 'S':
      writeClassKey(writer, message.key)
      break
    case 's':
      writeSchema(writer, message.schema)
      break
    case 'G':
      writeFieldTable(writer, message.query)
      break
    case 'g':
    case 'c':
    case 'i':
      writeObject(writer, message, tableOf(known, message.header.key))
      break
    case 'M':
      writeObjectId(writer, message.id)
      writeClassKey(writer, message.key)
      writer.str8(message.method)
      writeValues(writer, inputs(methodOf(known, message.key, message.method)), message.arguments)
      break
    case 'm':
      writer.uint32(message.status).str16(message.text)
      if (message.status === QmfStatus.OK) {
        writeValues(writer, outputs(calledMethod(known, message.sequence)), message.arguments)
      }
      break
    case 'e':
      writeClassKey(writer, message.key)
      writer.uint64(message.time).uint8(message.severity)
      writeValues(writer, eventOf(known, message.key).arguments, message.arguments)
      break
    case 'h':
      writer.uint64(message.time)
      break
    case 'z':
      writer.uint32(message.code).str8(message.text)
      break
    case 'A':
      writer.str8(message.label)
      writeUuid(writer, message.systemId)
      writer.uint32(message.brokerBank).uint32(message.agentBank)
      break
    case 'a':
      writer.uint32(message.brokerBank).uint32(message.agentBank)
      break
  }
}

function writeObject(writer: Writer, message: QmfMessage & { op: 'g' | 'c' | 'i' }, schema: TableSchema): void {
  writeObjectHeader(writer, message.header)
  if (message.op !== 'i') writeProperties(writer, schema, message.properties)
  if (message.op !== 'c') writeValues(writer, schema.statistics, message.statistics)
}

function tableOf(known: Known, key: ClassKey): TableSchema {
  const schema = known.schema(key)
  if (schema?.kind === 'table') return schema
  throw unknown(`class ${key.packageName}:${key.className}`)
}

function eventOf(known: Known, key: ClassKey) {
  const schema = known.schema(key)
  if (schema?.kind === 'event') return schema
  throw unknown(`event ${key.packageName}:${key.className}`)
}

function methodOf(known: Known, key: ClassKey, name: string): SchemaMethod {
  const method = tableOf(known, key).methods.find((candidate) => candidate.name === name)
  if (method) return method
  throw unknown(`method "${name}" of ${key.packageName}:${key.className}`)
}

function calledMethod(known: Known, sequence: number): SchemaMethod {
  const method = known.method(sequence)
  if (method) return method
  throw unknown(`call ${sequence}`)
}

function unknown(what: string): ProtocolError {
  return new ProtocolError('UNKNOWN_MESSAGE', `nothing is known of the ${what}`)
}
