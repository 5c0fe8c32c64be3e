/** How much room text takes on a terminal, and how it is made to fit. Colours take none. */
import { stripVTControlCharacters } from 'node:util'
import { printable } from './format.ts'

/** Terminals disagree on the width of some characters. These are the usual ones; a wrong guess shifts only the rest of a line. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]$/u
/** Two of them make a flag. */
const HALF_A_FLAG = /^\p{Regional_Indicator}$/u
const NO_WIDTH = /^[\p{Mn}\p{Me}\u1160-\u11ff]$/u
const IS_ASCII = /^[ -~]*$/

/** A text of a source, in which what steers a terminal or cannot be seen is escaped; what joins characters is removed. */
export function safeText(text: string): string {
  return IS_ASCII.test(text) ? text : printable(text).replaceAll(/\p{Cf}/gu, '')
}

/** The width of a text from `safeText`, perhaps coloured, in cells of the terminal. */
export function cellWidth(text: string): number {
  if (IS_ASCII.test(text)) return text.length
  let width = 0
  for (const character of stripVTControlCharacters(text)) width += widthOf(character)
  return width
}

/** Cuts or pads a text to exactly `width` cells; a cut text ends in "…". */
export function fitToWidth(text: string, width: number, align: 'left' | 'right' = 'left'): string {
  if (width <= 0) return ''
  const missing = width - cellWidth(text)
  if (missing < 0) return fitToWidth(cutToWidth(text, width), width, align)
  return align === 'left' ? text + ' '.repeat(missing) : ' '.repeat(missing) + text
}

/** Cuts a text to at most `width` cells; it ends in "…" then. */
export function cutToWidth(text: string, width: number): string {
  if (width < 1) return ''
  if (cellWidth(text) <= width) return text
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

/** A word that is too long is broken after one of these, if that uses half of the width. */
const BREAK = /[._/,:;=&-]/

/** Breaks a text into lines of at most `width` cells, between words where that is possible. Colours are lost if it is broken. */
export function wrapped(text: string, width: number): string[] {
  if (cellWidth(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of stripVTControlCharacters(text).split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (cellWidth(longer) <= width) {
      line = longer
      continue
    }
    if (line !== '') lines.push(line)
    line = word
    while (cellWidth(line) > width) {
      const at = breakIn(line, width)
      lines.push(line.slice(0, at))
      line = line.slice(at)
    }
  }
  return [...lines, line]
}

/** Where to break a word that is wider than `width`: an index from 1 on. */
function breakIn(word: string, width: number): number {
  let used = 0
  let at = 0
  let best = 0
  for (const character of word) {
    used += widthOf(character)
    if (used > width) break
    at += character.length
    if (BREAK.test(character) && used * 2 > width) best = at
  }
  return Math.max(1, best || at)
}

/** Joins parts with three spaces; the last ones are left out if there is no room for them. */
export function joinedToWidth(parts: readonly string[], width: number): string {
  let text = ''
  for (const part of parts) {
    if (part === '') continue
    const longer = text === '' ? part : `${text}   ${part}`
    if (text !== '' && cellWidth(longer) > width) break
    text = longer
  }
  return text
}
