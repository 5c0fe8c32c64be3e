/** Attributes as labels: the text of each value, as OpenTelemetry writes values that are not texts as texts. */
import { toBase64 } from '../bytes/base64.ts'
import type { AnyValue } from './metrics.ts'

/**
 * The text of a value (OpenTelemetry, "Attribute", non-string values): numbers and booleans as in JSON, bytes in base64, lists and
 * maps as JSON; the empty value is the empty text.
 */
export function textOfAny(value: AnyValue): string {
  if (value === undefined) return ''
  if (typeof value === 'string') return value
  if (typeof value === 'boolean' || typeof value === 'bigint' || typeof value === 'number') return String(value)
  if (value instanceof Uint8Array) return toBase64(value)
  return jsonOf(value)
}

function jsonOf(value: AnyValue): string {
  if (value === undefined) return 'null'
  if (typeof value === 'boolean' || typeof value === 'bigint') return String(value)
  // JSON has no NaN.
  if (typeof value === 'number') return Number.isFinite(value) ? String(value) : JSON.stringify(String(value))
  if (typeof value === 'string') return JSON.stringify(value)
  if (value instanceof Uint8Array) return JSON.stringify(toBase64(value))
  if ('entries' in value && !Array.isArray(value)) {
    const { entries } = value as { readonly entries: readonly { readonly key: string; readonly value: AnyValue }[] }
    return `{${entries.map(({ key, value }) => `${JSON.stringify(key)}:${jsonOf(value)}`).join(',')}}`
  }
  return `[${(value as readonly AnyValue[]).map(jsonOf).join(',')}]`
}
