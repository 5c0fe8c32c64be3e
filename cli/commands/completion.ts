/** `cinnabar completion` prints completion scripts for shells; the hidden `cinnabar complete` is what these scripts call. */
import { Argument, type Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { bashScript, fishScript, zshScript } from '../completion/scripts.ts'
import { type LookedUpKind, lookedUpKinds, lookUpNames, readTree } from '../completion/tree.ts'
import type { Cli } from '../session.ts'

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const
type Shell = keyof typeof SCRIPTS

const afterHelp = (program: string) => `
To enable completion in every new shell:
  bash   echo 'source <(${program} completion bash)' >> ~/.bashrc
  zsh    echo 'source <(${program} completion zsh)' >> ~/.zshrc      (after compinit)
  fish   ${program} completion fish > ~/.config/fish/completions/cinnabar.fish

The names of metrics and controls and the ids of channels come from the server. The login is taken from the options typed so
far, the environment or the configuration. If the server does not answer within a second, no names are offered.
In an expression of \`query\`, also one in quotes, its last name is completed, with the token of that command.`

export function addCompletion(program: Command, cli: Cli, clock: ClientClock = realClock()): void {
  const { terminal } = cli
  program
    .command('completion')
    .description('print a completion script for a shell')
    .addArgument(new Argument('<shell>', 'shell that the script is for').choices(Object.keys(SCRIPTS)))
    .addHelpText('after', afterHelp(terminal.program))
    .action((shell: Shell) => terminal.print(SCRIPTS[shell](readTree(program))))

  program
    .command('complete', { hidden: true })
    .addArgument(new Argument('<kind>').choices(lookedUpKinds))
    .argument('[word...]', 'words typed so far, after --; the last one may be incomplete')
    .action(async (kind: LookedUpKind, words: string[]) => {
      const names = await lookUpNames(cli, clock, kind, words)
      if (names.length > 0) await terminal.print(names.join('\n'))
    })
}
