/** `cinnabar completion`: what makes a shell complete this command line; and the hidden `complete`, which the shells call. */
import { Argument, type Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { bashScript } from '../completion/bash.ts'
import { type AskedKind, candidates } from '../completion/candidates.ts'
import { fishScript } from '../completion/fish.ts'
import { askedKinds, readTree } from '../completion/tree.ts'
import { zshScript } from '../completion/zsh.ts'
import type { Cli } from '../session.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const
type Shell = keyof typeof SCRIPTS

const AFTER_HELP = `
To have it in every shell, once:
  bash   echo 'source <(cinnabar completion bash)' >> ~/.bashrc
  zsh    echo 'source <(cinnabar completion zsh)' >> ~/.zshrc      (behind compinit)
  fish   cinnabar completion fish > ~/.config/fish/completions/cinnabar.fish

Names of metrics and controls and ids of channels are asked for at the server, as whom the options that are typed, the
environment or the configuration say; where there is none within a second, there are none.`

export function addCompletion(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const { terminal } = cli
  program
    .command('completion')
    .description('print a script that makes a shell complete this command line')
    .addArgument(new Argument('<shell>', 'which one').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', AFTER_HELP)
    .action((shell: Shell) => terminal.print(SCRIPTS[shell](readTree(program))))

  program
    .command('complete', { hidden: true })
    .addArgument(new Argument('<kind>').choices(askedKinds))
    .argument('[word...]', 'behind --: what has been typed, the last one as far as it goes')
    .action(async (kind: AskedKind, words: string[]) => {
      const names = await candidates(cli, clock, kind, words)
      if (names.length > 0) await terminal.print(names.join('\n'))
    })
}
