/**
 * Text with places for parameters: `--since={since}`. `{{` and `}}` are the braces themselves, and a brace that encloses no
 * name is only a brace. A value never makes two texts of one: what a template gives is one argument of a program.
 */

export interface Place {
  readonly parameter: string
}

export interface Template {
  /** In their order; never two texts behind each other, never an empty one. */
  readonly pieces: readonly (string | Place)[]
}

const PIECE = /\{\{|\}\}|\{([a-z][a-z0-9_]*)\}/g

export function parseTemplate(text: string): Template {
  const pieces: (string | Place)[] = []
  let plain = ''
  let end = 0
  const flush = (): void => {
    if (plain !== '') pieces.push(plain)
    plain = ''
  }
  for (const match of text.matchAll(PIECE)) {
    plain += text.slice(end, match.index)
    end = match.index + match[0].length
    if (match[1] === undefined) plain += match[0].slice(1)
    else {
      flush()
      pieces.push({ parameter: match[1] })
    }
  }
  plain += text.slice(end)
  flush()
  return { pieces }
}

export function parametersOf({ pieces }: Template): string[] {
  return pieces.flatMap((piece) => (typeof piece === 'string' ? [] : [piece.parameter]))
}

/** The text with its values; undefined if one of them was not given. */
export function fill({ pieces }: Template, valueFor: (parameter: string) => string | undefined): string | undefined {
  let text = ''
  for (const piece of pieces) {
    const part = typeof piece === 'string' ? piece : valueFor(piece.parameter)
    if (part === undefined) return undefined
    text += part
  }
  return text
}
