/** `cinnabar demo`: what Cinnabar is, in half a minute: a server is killed three times, and no value is lost. */
import { type Command, InvalidArgumentError } from 'commander'
import { runDemo } from '../demo/run.ts'
import type { Cli } from '../session.ts'

const SECONDS = 30
/** Much longer, and what waits for the resting consumer would not fit its channel. */
const MAX_SECONDS = 600

export function addDemo(program: Command, cli: Cli): void {
  program
    .command('demo')
    .description('kill a server of its own three times while values pass through it, and count what is lost')
    .option('--seconds <n>', 'about how long', seconds, SECONDS)
    .action(({ seconds }: { seconds: number }) => runDemo(cli, seconds))
}

function seconds(text: string): number {
  if (/^[1-9]\d{0,2}$/.test(text) && Number(text) <= MAX_SECONDS) return Number(text)
  throw new InvalidArgumentError(`It has to be a whole number from 1 to ${MAX_SECONDS}.`)
}
