/** Arguments of metrics and controls from plain values. The producer converts to the declared type where nothing is lost. */
import type { Argument, ArgumentList } from '../protocol/monitor/arguments.ts'
import { BasicType } from '../protocol/monitor/constants.ts'

export type ArgumentValue = string | number | bigint | boolean | Uint8Array
export type Arguments = Readonly<Record<string, ArgumentValue>>

const MAX_INT64 = 2n ** 63n - 1n

export function toArguments(values: Arguments): ArgumentList {
  return Object.entries(values).map(([name, value]) => toArgument(name, value))
}

function toArgument(name: string, value: ArgumentValue): Argument {
  switch (typeof value) {
    case 'string':
      return { name, type: BasicType.STRING, value }
    case 'boolean':
      return { name, type: BasicType.BOOLEAN, value }
    case 'bigint':
      return { name, type: value > MAX_INT64 ? BasicType.UINT64 : BasicType.INT64, value }
    case 'number':
      // An integer is taken where a DOUBLE is declared, but not the other way round [MON 2].
      return Number.isSafeInteger(value)
        ? { name, type: BasicType.INT64, value: BigInt(value) }
        : { name, type: BasicType.DOUBLE, value }
    default:
      return { name, type: BasicType.OPAQUE, value }
  }
}
