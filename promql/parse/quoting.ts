/**
 * Texts in quotes, by the rules of Go that PromQL has: double and single quotes with escapes, backticks without. A text that is
 * not UTF-8, which escapes such as `\xff` can make, is read with lone surrogates in the place of those bytes, so that it is equal
 * to itself and never a valid name.
 */

const SIMPLE: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
}

/** The text inside of quotes; undefined if it is not well written. */
export function unquoted(literal: string): string | undefined {
  const quote = literal[0] ?? ''
  if (literal.length < 2 || literal.at(-1) !== quote) return undefined
  const inside = literal.slice(1, -1)
  if (quote === '`') return inside.includes('`') ? undefined : inside
  if (quote !== '"' && quote !== "'") return undefined
  return inside.includes('\n') ? undefined : unescaped(inside, quote)
}

function unescaped(text: string, quote: string): string | undefined {
  if (!text.includes('\\')) return text.includes(quote) ? undefined : text
  let result = ''
  let bytes: number[] = []
  for (let index = 0; index < text.length; ) {
    const character = text[index] ?? ''
    if (character === quote) return undefined
    if (character !== '\\') {
      result += decoded(bytes) + character
      bytes = []
      index++
      continue
    }
    const found = readEscape(text, index + 1, quote)
    if (found === undefined) return undefined
    if (typeof found.is === 'number') bytes.push(found.is)
    else {
      result += decoded(bytes) + found.is
      bytes = []
    }
    index = found.next
  }
  return result + decoded(bytes)
}

/** What follows a backslash: a text, or a byte. */
function readEscape(text: string, at: number, quote: string): { is: string | number; next: number } | undefined {
  const kind = text[at] ?? ''
  if (kind === quote) return { is: quote, next: at + 1 }
  const simple = Object.hasOwn(SIMPLE, kind) ? SIMPLE[kind] : undefined
  if (simple !== undefined) return { is: simple, next: at + 1 }
  const [digits, base] =
    kind === 'x' ? [2, 16] : kind === 'u' ? [4, 16] : kind === 'U' ? [8, 16] : /[0-7]/.test(kind) ? [3, 8] : [0, 0]
  if (digits === 0) return undefined
  const from = base === 8 ? at : at + 1
  const written = text.slice(from, from + digits)
  if (written.length < digits || !(base === 8 ? /^[0-7]+$/ : /^[0-9a-fA-F]+$/).test(written)) return undefined
  const code = Number.parseInt(written, base)
  if (kind === 'u' || kind === 'U') {
    if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return undefined
    return { is: String.fromCodePoint(code), next: from + digits }
  }
  return code > 255 ? undefined : { is: code, next: from + digits }
}

function decoded(bytes: readonly number[]): string {
  if (bytes.length === 0) return ''
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
  } catch {
    return String.fromCharCode(...bytes.map((byte) => (byte < 0x80 ? byte : 0xdc00 + byte)))
  }
}

/** A text in double quotes, as Go's `%q` writes it. */
export function quoted(text: string): string {
  const escaped = text.replace(/["\\\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === '"' || character === '\\') return `\\${character}`
    const simple = Object.entries(SIMPLE).find(([, is]) => is === character)?.[0]
    if (simple !== undefined) return `\\${simple}`
    const code = character.codePointAt(0) ?? 0
    if (code > 0xdc00 && code <= 0xdcff) return `\\x${(code - 0xdc00).toString(16).padStart(2, '0')}`
    if (code < 0x80) return `\\x${code.toString(16).padStart(2, '0')}`
    return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
  return `"${escaped}"`
}
