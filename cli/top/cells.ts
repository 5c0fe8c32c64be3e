/**
 * Text in cells of a terminal. How wide a character is was never agreed on for all of them: here it is what most
 * terminals do, and the screen is drawn so that a wrong guess shifts the rest of one line and nothing else.
 */
import { printable } from '../output/text.ts'

const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u
/** Two of them make a flag. */
const HALF_A_FLAG = /^\p{Regional_Indicator}$/u
const NO_WIDTH = /^[\p{Mn}\p{Me}\u1160-\u11ff]$/u
const IS_ASCII = /^[ -~]*$/

/** What a source sent, without anything that moves the cursor, joins characters or turns the direction of writing. */
export function safe(text: string): string {
  return IS_ASCII.test(text) ? text : printable(text).replaceAll(/\p{Cf}/gu, '')
}

/** Of a text that is `safe`. */
export function cellWidth(text: string): number {
  if (IS_ASCII.test(text)) return text.length
  let width = 0
  for (const character of text) width += widthOf(character)
  return width
}

/** Cut or filled up to exactly `width` cells; what was cut ends in "…". */
export function fitted(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  const missing = width - cellWidth(text)
  if (missing < 0) return fitted(cut(text, width), width, align)
  return align === 'left' ? text + ' '.repeat(missing) : ' '.repeat(missing) + text
}

function cut(text: string, width: number): string {
  if (width < 1) return ''
  let used = 0
  let kept = ''
  for (const character of text) {
    used += widthOf(character)
    if (used > width - 1) break
    kept += character
  }
  return `${kept}…`
}

function widthOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0
  return WIDE.test(character) && !HALF_A_FLAG.test(character) ? 2 : 1
}
