/**
 * Text with placeholders for parameters: `--since={since}`. `{{` and `}}` stand for single braces, and braces that do not
 * enclose a name stand for themselves. A filled template is always exactly one argument of a program, whatever the values.
 */

export interface Placeholder {
  readonly parameter: string
}

export interface Template {
  /** In order, without empty texts and without two consecutive texts. */
  readonly pieces: readonly (string | Placeholder)[]
}

const PIECE = /\{\{|\}\}|\{([a-z][a-z0-9_]*)\}/g

export function parseTemplate(text: string): Template {
  const pieces: (string | Placeholder)[] = []
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

export function templateParameters({ pieces }: Template): string[] {
  return pieces.flatMap((piece) => (typeof piece === 'string' ? [] : [piece.parameter]))
}

/** Returns the text with its values; undefined if one of the parameters was omitted. */
export function fillTemplate(
  { pieces }: Template,
  valueFor: (parameter: string) => string | undefined,
): string | undefined {
  let text = ''
  for (const piece of pieces) {
    const part = typeof piece === 'string' ? piece : valueFor(piece.parameter)
    if (part === undefined) return undefined
    text += part
  }
  return text
}
