/**
 * The commands of a console block: what stands after `$ `, with what is shown below it. `> ` goes on with a command, a line
 * `^C` is Ctrl-C, and what ends with ` &` goes on beside the others. The last command of a block ```console server is the
 * page's server from there on.
 */
import { insteadOf, runnable } from './instead.ts'
import type { Block } from './page.ts'
import type { Command, World } from './world.ts'

/** Hidden blocks kill or stop the server and start it again with this. */
const RESTART = /^restart-server (SIGKILL|SIGTERM)$/

/** Programs of Debian packages: where they are missing a test is skipped and says what to install. */
const NEEDED: Readonly<Record<string, string>> = {
  gmetad: 'gmetad',
  gmetric: 'ganglia-monitor',
  gmond: 'ganglia-monitor',
  mcs: 'mono-mcs',
  mono: 'mono-runtime',
  openssl: 'openssl',
  prometheus: 'prometheus',
  'prometheus-node-exporter': 'prometheus-node-exporter',
  python3: 'python3',
  sqlite3: 'sqlite3',
}

export function isConsole({ language, lines }: Block): boolean {
  return language === 'console' || (language === '' && (lines[0]?.startsWith('$ ') ?? false))
}

/** Throws where the block does not begin with a command. */
export function commandsOf({ lines, words }: Block): Command[] {
  const commands: { line: string; shown: string[]; isInterrupted: boolean; isServer: boolean }[] = []
  for (const line of lines) {
    const last = commands.at(-1)
    if (line.startsWith('$ ')) commands.push({ line: line.slice(2), shown: [], isInterrupted: false, isServer: false })
    else if (last === undefined) throw new Error(`a console block begins with a command, after "$ ", not with: ${line}`)
    else if (line.startsWith('> ') && last.shown.length === 0) last.line += `\n${line.slice(2)}`
    else if (line === '^C') last.isInterrupted = true
    else last.shown.push(line)
  }
  const last = commands.at(-1)
  if (last !== undefined) last.isServer = words.includes('server')
  return commands.map((command) => {
    const line = command.line.replace(/ &$/, '')
    return { ...command, line, isBeside: line !== command.line }
  })
}

/** The package that has to be installed before any of these can be run. */
export function missingFor(blocks: readonly Block[], isInstalled: (program: string) => boolean): string | undefined {
  const lines = blocks.flatMap((block) => block.lines)
  const needed = Object.keys(NEEDED).filter((name) =>
    lines.some((line) => new RegExp(`^\\$ (.* )?(/\\S+/)?${name} `).test(line)),
  )
  const missing = needed.find((program) => !isInstalled(program))
  return missing === undefined ? undefined : NEEDED[missing]
}

/** Whether it is what another terminal does while the next block runs. */
export function isMeanwhile({ words }: Block): boolean {
  return words.includes('meanwhile')
}

/** Whether the first command that is run is the server: then none may run before. */
export function startsItself(blocks: readonly Block[]): boolean {
  const isRun = (line: string) => line.startsWith('$ ') && insteadOf(line.slice(2)) === undefined
  const first = blocks.find((block) => isConsole(block) && block.lines.some(isRun))
  return first?.words.includes('server') ?? false
}

export async function runCommands(block: Block, before: Block | undefined, world: World): Promise<void> {
  const meanwhile =
    before && isMeanwhile(before)
      ? commandsOf(before)
          .map(({ line }) => line)
          .join('\n')
      : undefined
  for (const command of commandsOf(block)) {
    const signal = RESTART.exec(command.line)?.[1]
    if (signal === 'SIGKILL' || signal === 'SIGTERM') await world.restart(signal)
    else {
      const line = runnable(command.line)
      // What does nothing prints nothing.
      if (!/^(: (&&|\|\|) )*:$/.test(line)) await world.run({ ...command, line, meanwhile })
    }
  }
}
