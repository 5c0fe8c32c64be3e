/**
 * What cannot be undone is named, with what goes, and then done only if a person says so at the terminal, or the command line says
 * `--yes`. Scripts have no terminal and get exit code 2 without it, so that they never wait for an answer.
 */
import { ExitCode, Failure } from './failure.ts'
import type { Terminal } from './terminal.ts'

export interface YesOption {
  readonly yes?: boolean
}

/** For commander. */
export const YES_OPTION = ['--yes', 'do it without asking'] as const

/** Rejects with Failure unless the answer is yes. `what` names, line by line, what goes. */
export async function confirm(
  terminal: Pick<Terminal, 'note' | 'ask'>,
  { yes = false }: YesOption,
  what: readonly string[],
  question: string,
): Promise<void> {
  if (yes) return
  for (const line of what) terminal.note(line)
  const answer = await terminal.ask(`${question} [y/N] `)
  if (answer === undefined) {
    throw new Failure(ExitCode.USAGE, 'nothing was changed, because there is no terminal to ask at: add --yes to do it')
  }
  if (!/^y(es)?$/i.test(answer.trim())) throw new Failure(ExitCode.FAILED, 'nothing was changed')
}

/** "1 value", "5 values". */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
