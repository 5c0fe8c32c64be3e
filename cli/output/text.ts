/** Values and times as people read them. What sources sent is made harmless: it must not be able to steer a terminal. */

import { BasicType, type Value, valueToJson } from '../../client/index.ts'

/** Control characters written out, as \x1b. */
export function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/gu, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16)}`
  })
}

/** A value in one line. A DOUBLE is rounded to seven digits, since many come from a float; `--json` has all of them. */
export function formatValue(value: Value): string {
  switch (value.type) {
    case BasicType.VOID:
      return '-'
    case BasicType.DOUBLE:
      return formatDouble(value.value)
    case BasicType.OPAQUE:
      return Array.from(value.value, (byte) => byte.toString(16).padStart(2, '0')).join('')
    case BasicType.STRING:
      return printable(String(valueToJson(value)))
    case BasicType.REC:
      return value.value.map((field) => `${printable(field.name)}=${formatValue(field)}`).join(' ')
    case BasicType.ARRAY: {
      const { element, items } = value.value
      return `[${items.map((item) => formatValue({ type: element, value: item } as Value)).join(', ')}]`
    }
    default:
      return String(value.value)
  }
}

function formatDouble(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 1e7 ? String(value) : String(Number(value.toPrecision(7)))
}

/** The local date and time of microseconds since 1970. */
export function formatTime(microseconds: number): string {
  if (microseconds === 0) return '-'
  const date = new Date(microseconds / 1000)
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join('-')
  return `${day} ${formatClock(microseconds)}`
}

/** The local time of day of microseconds since 1970. */
export function formatClock(microseconds: number): string {
  const date = new Date(microseconds / 1000)
  const seconds = [two(date.getHours()), two(date.getMinutes()), two(date.getSeconds())].join(':')
  return `${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}`
}

function two(number: number): string {
  return String(number).padStart(2, '0')
}
