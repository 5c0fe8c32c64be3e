/**
 * Whether what a command printed is what the document shows. Words have to be the same; any number stands for any other,
 * white space for white space, `…` for anything in its line, a line of its own that is `…` for any lines.
 */

const ID = /\d{7,}/g

/** What is shown as an expression for the whole output. */
function expression(shown: readonly string[]): RegExp {
  const lines = shown.map((line) => (line.trim() === '…' ? '(?:.*\\n)*' : `${lineExpression(line)}\\n`))
  return new RegExp(`^${lines.join('')}$`)
}

function lineExpression(line: string): string {
  const pieces = line.trim().split(/(…|-?\d+(?:\.\d+)?|\s+)/)
  const patterns = pieces.map((piece) => {
    if (piece === '…') return '.*'
    if (/^-?\d/.test(piece)) return '-?\\d+(?:\\.\\d+)?'
    return /^\s+$/.test(piece) ? '\\s+' : piece.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&')
  })
  return `[^\\S\\n]*${patterns.join('').replaceAll('\\s+', '[^\\S\\n]+')}[^\\S\\n]*`
}

/** Empty lines at either end count nowhere. */
export function linesOf(text: string): string[] {
  const trimmed = text.replace(/^(?:\s*\n)+|\s+$/g, '')
  return trimmed === '' ? [] : trimmed.split('\n')
}

/** Both without empty lines at their ends. */
export function isShown(shown: readonly string[], printed: readonly string[]): boolean {
  const wanted = inOrder(linesOf(shown.join('\n')))
  const lines = inOrder(printed).map((line) => `${line}\n`)
  return expression(wanted).test(lines.join(''))
}

/** What stood for the long numbers (ids) that are shown, line by line; for output that is as shown. */
export function idsIn(shown: readonly string[], printed: readonly string[]): [shown: string, printed: string][] {
  const lines = inOrder(printed)
  return inOrder(shown).flatMap((line, index) => {
    const ids = line.match(ID) ?? []
    const real = lines[index]?.match(ID) ?? []
    return ids.length === real.length ? ids.map((id, at): [string, string] => [id, real[at] ?? id]) : []
  })
}

/** Rows that begin with an id come in its order, which is a matter of chance: here they stand in that of their words. */
function inOrder(lines: readonly string[]): string[] {
  const ordered: string[] = []
  let rows: string[] = []
  for (const line of [...lines, '']) {
    if (/^\s*\d{7,}\b/.test(line)) rows.push(line)
    else {
      ordered.push(...rows.sort((a, b) => (words(a) < words(b) ? -1 : 1)), line)
      rows = []
    }
  }
  return ordered.slice(0, -1)
}

function words(line: string): string {
  return line.replace(/[\d.:\s-]+/g, ' ')
}
