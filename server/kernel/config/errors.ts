/** A mistake in the configuration, for a person: where it stands, what it is, what to write instead. */
export interface ConfigProblem {
  /** The file or the environment variable. */
  readonly source: string
  /** The line of the file, from 1. */
  readonly line?: number | undefined
  readonly message: string
}

/** Carries all problems, not only the first. Exit code 2. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
  readonly code = 'BAD_CONFIG'
  readonly problems: readonly ConfigProblem[]

  constructor(problems: readonly ConfigProblem[]) {
    const lines = problems.map(({ source, line, message }) => `${source}${line ? `:${line}` : ''}: ${message}`)
    super(lines.join('\n'))
    this.problems = problems
  }
}

/** ": did you mean `x`?" for the candidate nearest to `word`, or "" where none is near. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = candidates
    .map((candidate) => ({ candidate, distance: distance(word.toLowerCase(), candidate.toLowerCase()) }))
    .filter((entry) => entry.distance <= Math.min(3, word.length / 2))
    .sort((a, b) => a.distance - b.distance)
  return near[0] ? `: did you mean \`${near[0].candidate}\`?` : ''
}

/** The Levenshtein distance: how many characters to add, drop or replace. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
