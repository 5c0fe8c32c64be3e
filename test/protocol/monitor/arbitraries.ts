/**
 * Random commands, messages and values for property tests. Strings are also bytes that are no UTF-8, integers have
 * their extremes, values nest as deep as the wire allows.
 */
import fc from 'fast-check'
import { type CommandName, commands } from '../../../protocol/monitor/commands.ts'
import { BasicType, MAX_ID } from '../../../protocol/monitor/constants.ts'
import { type FieldKind, fieldKinds as kinds } from '../../../protocol/monitor/fields.ts'
import type { Message } from '../../../protocol/monitor/message.ts'
import type { Field, Value } from '../../../protocol/monitor/value.ts'

const utf8 = new TextEncoder()

export const uint32 = fc.oneof(fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xffffffff), fc.nat(0xffffffff))
/** What is uint64 on the wire and a number here: transaction ids, times, counts. */
export const uint53 = fc.oneof(fc.constantFrom(0, 0xffffffff, 0x100000000, Number.MAX_SAFE_INTEGER), fc.maxSafeNat())
export const bytes = fc.uint8Array({ maxLength: 40 })
export const text = fc.string({ unit: 'binary', maxLength: 20 })

export const name = nameOf(255)

function nameOf(maxBytes: number): fc.Arbitrary<string> {
  const character = fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }).filter((one) => one >= ' ')
  return fc
    .oneof(
      { weight: 20, arbitrary: fc.array(character, { minLength: 1, maxLength: 12 }).map((list) => list.join('')) },
      { weight: 1, arbitrary: fc.constant('n'.repeat(maxBytes)) },
    )
    .filter((candidate) => utf8.encode(candidate).length <= maxBytes)
}

/** 0xff stands nowhere in UTF-8. */
const noUtf8 = fc.tuple(bytes, bytes).map(([a, b]) => new Uint8Array([...a, 0xff, ...b]))

type Bare = Value['value']
const bareOf: Readonly<Record<number, fc.Arbitrary<Bare>>> = {
  [BasicType.INT32]: fc.oneof(fc.constantFrom(-0x80000000, -1, 0, 0x7fffffff), fc.integer()),
  [BasicType.UINT32]: uint32,
  [BasicType.INT64]: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  [BasicType.UINT64]: fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
  [BasicType.DOUBLE]: fc.double(),
  [BasicType.BOOLEAN]: fc.boolean(),
  [BasicType.STRING]: fc.oneof(text, noUtf8),
  [BasicType.OPAQUE]: bytes,
  [BasicType.VOID]: fc.constant(null),
}

const scalarTypes = Object.keys(bareOf).map(Number)
const argumentTypes = scalarTypes.filter((type) => type <= BasicType.OPAQUE)

const typed = (type: number, bare: fc.Arbitrary<Bare>): fc.Arbitrary<Value> =>
  bare.map((value) => ({ type, value }) as Value)

const anyOf = (types: readonly number[]): fc.Arbitrary<Value> =>
  fc.constantFrom(...types).chain((type) => typed(type, bareOf[type]!))

const fieldOf = (value: fc.Arbitrary<Value>): fc.Arbitrary<Field> =>
  fc.tuple(name, value).map(([of, given]) => ({ name: of, ...given }))

/** A value whose RECs and ARRAYs nest at most `depth` deep. */
export function value(depth = 4): fc.Arbitrary<Value> {
  if (depth === 0) return anyOf(scalarTypes)
  return fc.oneof({ weight: 2, arbitrary: anyOf(scalarTypes) }, { weight: 3, arbitrary: nested(depth) })
}

/** A REC or an ARRAY. */
function nested(depth: number): fc.Arbitrary<Value> {
  return fc.oneof(typed(BasicType.REC, rec(depth)), typed(BasicType.ARRAY, array(depth)))
}

function rec(depth: number): fc.Arbitrary<Bare> {
  return fc.array(fieldOf(value(depth - 1)), { maxLength: 3 })
}

function array(depth: number): fc.Arbitrary<Bare> {
  const types = depth > 1 ? [...scalarTypes, BasicType.REC, BasicType.ARRAY] : scalarTypes
  return fc.constantFrom(...types).chain((element) => {
    const item =
      element === BasicType.REC ? rec(depth - 1) : element === BasicType.ARRAY ? array(depth - 1) : bareOf[element]!
    return fc.array(item, { maxLength: 3 }).map((items) => ({ element, items }) as Bare)
  })
}

const argumentList = fc.uniqueArray(fieldOf(anyOf(argumentTypes)), { maxLength: 5, selector: (field) => field.name })

const ofKind = new Map<FieldKind<unknown>, fc.Arbitrary<unknown>>([
  [kinds.uint32, uint32],
  [kinds.channel, uint32],
  [kinds.transactionId, uint53],
  [kinds.flag, fc.boolean()],
  [kinds.name, name],
  [kinds.method, fc.oneof(name, fc.constant(''))],
  [kinds.url, fc.oneof(nameOf(2048), fc.constant(''))],
  [kinds.opaque, bytes],
  [kinds.argumentList, argumentList],
])

/** Any command, with fields that fit its declaration. */
export const command = fc
  .constantFrom(...(Object.keys(commands) as CommandName[]))
  .chain((of) => fc.record({ command: fc.constant(of), seq: uint32, fields: fieldsOf(of) }))

function fieldsOf(of: CommandName): fc.Arbitrary<Record<string, unknown>> {
  const declared = Object.entries<FieldKind<unknown>>(commands[of].fields)
  return fc.record(Object.fromEntries(declared.map(([key, kind]) => [key, ofKind.get(kind)!])))
}

const noDetail = fc.record({ status: fc.constantFrom(0, 1), detail: fc.constant('') })
const withDetail = fc.record({ status: uint32.filter((status) => status > 1), detail: text })
const response = fc
  .tuple(fc.record({ seq: uint32, result: uint32 }), fc.oneof(noDetail, withDetail))
  .map(([a, b]): Message => ({ kind: 'response', ...a, ...b }))
const words = fc.array(text, { maxLength: 3 })
const caps = fc.record({
  major: uint32,
  minor: uint32,
  auth: words,
  layer: words,
  extension: words,
  software: text,
  maxFrameBytes: uint32,
})

export const message: fc.Arbitrary<Message> = fc.oneof(
  response,
  caps.map((given): Message => ({ kind: 'caps', caps: given })),
  bytes.map((data): Message => ({ kind: 'auth', data })),
  fc.record({
    kind: fc.constant('gap' as const),
    transaction: uint53,
    metric: uint32,
    count: uint53,
    from: uint53,
    to: uint53,
    reason: uint32,
  }),
  fc.record({ kind: fc.constant('notice' as const), code: uint32, channel: uint32, detail: text }),
  fc.record({
    kind: fc.constant('value' as const),
    metric: fc.integer({ min: 1, max: MAX_ID }),
    transaction: uint53,
    time: uint53,
    value: value(),
  }),
)
