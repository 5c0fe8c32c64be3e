/** The arguments of an EXECUTE: of the declared types, with defaults; as rules see them; and what tells two EXECUTEs apart. */
import { createHash, createHmac } from 'node:crypto'
import { toBase64 } from '../../protocol/bytes/base64.ts'
import { XdrWriter } from '../../protocol/bytes/writer.ts'
import type { ArgumentList } from '../../protocol/monitor/arguments.ts'
import { type Value, writeTyped } from '../../protocol/monitor/value.ts'
import { StatusError } from '../core/errors.ts'
import { convertArguments } from '../metrics/arguments.ts'
import {
  type Control,
  type ControlParameter,
  commonParameters,
  DRY_RUN_PARAMETER,
  type Given,
  KEY_PARAMETER,
} from './control.ts'
import type { Keyed } from './executions.ts'

const MAX_KEY_BYTES = 128

/** What was given, split into what the control gets and what is about the EXECUTE itself. */
export interface Asked {
  readonly given: Given
  /** The same without what the control filled in by how things are now: of one key it has to be the same each time. */
  readonly own: Given
  /** All of it, for the audit log. */
  readonly shown: Given
  readonly key: string | undefined
  readonly isDryRun: boolean
}

/** Throws StatusError INVALID_ARGUMENT for names and types; whether something is missing is looked at later. */
export function readGiven(list: ArgumentList, control: Control): Asked {
  const shown = convertArguments(list, [...control.parameters, ...commonParameters], control.name)
  for (const parameter of control.parameters) {
    if (parameter.default !== undefined && !shown.has(parameter.name)) shown.set(parameter.name, parameter.default)
  }
  const own = new Map(shown)
  control.complete?.(shown)
  const key = shown.get(KEY_PARAMETER) as string | undefined
  const isDryRun = shown.get(DRY_RUN_PARAMETER) === true
  const given = new Map(shown)
  given.delete(KEY_PARAMETER)
  given.delete(DRY_RUN_PARAMETER)
  return { given, own, shown, key, isDryRun }
}

/** Throws StatusError INVALID_ARGUMENT. */
export function checkGiven({ given, key }: Asked, { name, parameters }: Control): void {
  const missing = parameters.find((parameter) => !parameter.optional && !given.has(parameter.name))
  if (missing) throw new StatusError('INVALID_ARGUMENT', `${name} needs the argument ${missing.name}`)
  if (key === undefined) return
  const bytes = Buffer.byteLength(key)
  if (bytes < 1 || bytes > MAX_KEY_BYTES || /\p{Cc}/u.test(key)) {
    const wanted = `1 to ${MAX_KEY_BYTES} bytes without control characters`
    throw new StatusError('INVALID_ARGUMENT', `${KEY_PARAMETER} has to be ${wanted}`)
  }
}

/** An argument as text, for rules. */
export function textOf(value: Value['value'] | undefined): string | undefined {
  if (value === undefined) return undefined
  return value instanceof Uint8Array ? toBase64(value) : String(value)
}

/**
 * What was asked for under a key, and not what the control made of it. The digest is stored, so nothing secret goes into it,
 * or passwords could be guessed from it; the proof takes in everything, under `secret`, which only this process knows.
 */
export function keyedOf(key: string, own: Given, { parameters }: Control, secret: Uint8Array): Keyed {
  const masked = new Map(own)
  for (const { name, masked: mask } of parameters) {
    const value = own.get(name)
    if (value !== undefined && mask !== undefined) masked.set(name, mask(value))
  }
  const shown = parameters.filter((parameter) => !parameter.secret)
  const digest = createHash('sha256').update(bytesOf(masked, shown))
  const proof = createHmac('sha256', secret).update(bytesOf(own, parameters)).digest('base64')
  return { key, digest: new Uint8Array(digest.digest()), proof }
}

function bytesOf(given: Given, parameters: readonly ControlParameter[]): Uint8Array {
  const writer = new XdrWriter()
  for (const { name, type } of [...parameters].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const value = given.get(name)
    if (value === undefined) continue
    writer.string(name)
    writeTyped(writer, { type, value } as Value)
  }
  return writer.bytes()
}
