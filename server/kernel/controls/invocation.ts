/** The arguments of an EXECUTE: conversion to the declared types, their form for rules, and digests that distinguish EXECUTEs. */
import { createHash, createHmac } from 'node:crypto'
import { formatRule, type Rule } from '../../../auth/permissions.ts'
import { toBase64 } from '../../../protocol/bytes/base64.ts'
import { XdrWriter } from '../../../protocol/bytes/writer.ts'
import { type ArgumentList, writeArguments } from '../../../protocol/monitor/arguments.ts'
import { type Value, writeTyped } from '../../../protocol/monitor/value.ts'
import type { ApprovalRow } from '../../../storage/store.ts'
import { StatusError } from '../core/errors.ts'
import { convertArguments, storable } from '../metrics/arguments.ts'
import { checkBounds } from './bounds.ts'
import {
  type Control,
  type ControlArguments,
  type ControlContext,
  type ControlParameter,
  type ControlRun,
  commonParameters,
  DRY_RUN_PARAMETER,
  KEY_PARAMETER,
  ON_BEHALF_OF_PARAMETER,
  REPEAT_ONLY_PARAMETER,
} from './control.ts'
import type { IdempotencyKey } from './executions.ts'

const MAX_KEY_BYTES = 128

/** An EXECUTE, split into the arguments of the control and those of every control. */
export interface Invocation {
  readonly args: ControlArguments
  /** `args` without those that the control added, which may differ between two EXECUTEs with the same key. */
  readonly given: ControlArguments
  /** All arguments, for the audit log. */
  readonly all: ControlArguments
  readonly key: string | undefined
  readonly isDryRun: boolean
  /** Whether it may only repeat an EXECUTE with the same key. */
  readonly isRepeatOnly: boolean
  readonly onBehalfOf: string | undefined
}

/** Throws StatusError INVALID_ARGUMENT for unknown names and wrong types; `checkInvocation` finds missing arguments. */
export function readInvocation(list: ArgumentList, control: Control): Invocation {
  const all = convertArguments(list, [...control.parameters, ...commonParameters], control.name)
  for (const parameter of control.parameters) {
    if (parameter.default !== undefined && !all.has(parameter.name)) all.set(parameter.name, parameter.default)
  }
  const given = new Map(all)
  control.complete?.(all)
  const key = all.get(KEY_PARAMETER) as string | undefined
  const isDryRun = all.get(DRY_RUN_PARAMETER) === true
  const isRepeatOnly = all.get(REPEAT_ONLY_PARAMETER) === true
  const onBehalfOf = all.get(ON_BEHALF_OF_PARAMETER) as string | undefined
  const args = new Map(all)
  for (const { name } of commonParameters) args.delete(name)
  return { args, given, all, key, isDryRun, isRepeatOnly, onBehalfOf }
}

/** Throws StatusError for missing arguments and for those out of their bounds. */
export function checkInvocation({ args, all, key }: Invocation, { name, parameters }: Control): void {
  const missing = parameters.find((parameter) => !parameter.optional && !args.has(parameter.name))
  if (missing) throw new StatusError('INVALID_ARGUMENT', `${name} needs the argument ${missing.name}`)
  for (const parameter of [...parameters, ...commonParameters]) {
    const value = all.get(parameter.name)
    if (value !== undefined) checkBounds(parameter, value)
  }
  if (key === undefined) return
  const bytes = Buffer.byteLength(key)
  if (bytes < 1 || bytes > MAX_KEY_BYTES || /\p{Cc}/u.test(key)) {
    const wanted = `1 to ${MAX_KEY_BYTES} bytes without control characters`
    throw new StatusError('INVALID_ARGUMENT', `${KEY_PARAMETER} must be ${wanted}`)
  }
}

/** Formats an argument as text, as rules compare it. */
export function argumentText(value: Value['value'] | undefined): string | undefined {
  if (value === undefined) return undefined
  return value instanceof Uint8Array ? toBase64(value) : String(value)
}

/**
 * Computes the digests of the arguments that were given. `digest` is stored, so it excludes secrets, which could be guessed
 * from it. `proof` includes them and is keyed with `secret`, which only this process knows.
 */
export function idempotencyKeyOf(
  key: string,
  given: ControlArguments,
  { parameters }: Control,
  secret: Uint8Array,
): IdempotencyKey {
  const masked = new Map(given)
  for (const { name, masked: mask } of parameters) {
    const value = given.get(name)
    if (value !== undefined && mask !== undefined) masked.set(name, mask(value))
  }
  const publicParameters = parameters.filter((parameter) => !parameter.secret)
  const digest = createHash('sha256').update(bytesOf(masked, publicParameters))
  const proof = createHmac('sha256', secret).update(bytesOf(given, parameters)).digest('base64')
  return { key, digest: new Uint8Array(digest.digest()), proof }
}

/** Has a control check its arguments. `all` has the key that is made for it, if it needs one. Throws StatusError. */
export function prepared(
  control: Control,
  { args, all, key, isDryRun, onBehalfOf }: Invocation,
  context: ControlContext,
): { readonly all: ControlArguments; readonly run: ControlRun } {
  if (isDryRun) return { all, run: control.prepare(args, { ...context, onBehalfOf }) }
  const made = control.isKeyed && key === undefined ? crypto.randomUUID() : undefined
  const run = control.prepare(args, { ...context, onBehalfOf, key: key ?? made })
  return { all: made === undefined ? all : new Map(all).set(KEY_PARAMETER, made), run }
}

/**
 * What an approval is bound to: the command with all its arguments, what the control runs, the rule that has it wait, and the one EXECUTE
 * that this is, by the user, the channel, the id of its result, and the microsecond in which it was asked for.
 */
export function approvalDigest(
  { name, parameters, definition = '' }: Control,
  all: ControlArguments,
  rule: Rule,
  { user, channel, result, asked }: Pick<ApprovalRow, 'user' | 'channel' | 'result' | 'asked'>,
): Uint8Array {
  const { role, approval = '' } = rule
  const texts = [name, definition, role, approval, formatRule(rule)]
  const head = JSON.stringify([...texts, user, channel, result, asked])
  const hash = createHash('sha256')
    .update(head)
    .update(bytesOf(all, [...parameters, ...commonParameters]))
  return new Uint8Array(hash.digest())
}

/** Arguments as they are stored until an EXECUTE may run, with their declared types. */
export function storedArguments(all: ControlArguments, { parameters }: Control): Uint8Array {
  const writer = new XdrWriter()
  writeArguments(writer, storable(all, [...parameters, ...commonParameters]))
  return writer.copy()
}

/** Whether arguments hold something that must not lie on a disk, or the control takes something of that kind. */
export function holdsSecret(all: ControlArguments, { parameters }: Control): boolean {
  return parameters.some(({ name, secret, masked }) => {
    const value = all.get(name)
    return secret === true || (value !== undefined && masked !== undefined && masked(value) !== value)
  })
}

function bytesOf(given: ControlArguments, parameters: readonly ControlParameter[]): Uint8Array {
  const writer = new XdrWriter()
  for (const { name, type } of [...parameters].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const value = given.get(name)
    if (value === undefined) continue
    writer.string(name)
    writeTyped(writer, { type, value } as Value)
  }
  return writer.bytes()
}
