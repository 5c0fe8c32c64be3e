import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROGRAM } from '../support/program.ts'
import { ROOT } from './page.ts'

export const SERVE = 'cinnabar serve'

/** `feedPort`: where the page's server may take smon. */
export function installPrograms(folder: string, feedPort: number): void {
  const node = `exec '${process.execPath}'`
  const tsx = `${node} --import '${import.meta.resolve('tsx')}'`
  const programs = {
    cinnabar: `${smonPort(feedPort)}\n${node} '${PROGRAM}' "$@"`,
    npx: `case $1 in cinnabar) exec "$@";; tsx) shift; ${tsx} "$@";; esac\n${unknown('npx')}`,
    npm: `case $1 in start) exec ${SERVE};; esac\n${unknown('npm')}`,
  }
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
}

/** As after `npm install cinnabar`, and with the agents of a clone. */
export function installPackage(directory: string): void {
  const installed = join(directory, 'node_modules', 'cinnabar')
  mkdirSync(installed, { recursive: true })
  copyFileSync(join(ROOT, 'package.json'), join(installed, 'package.json'))
  symlinkSync(join(ROOT, 'dist'), join(installed, 'dist'), 'dir')
  symlinkSync(join(ROOT, 'node_modules', '@types'), join(directory, 'node_modules', '@types'), 'dir')
  symlinkSync(join(ROOT, 'agents'), join(directory, 'agents'), 'dir')
  writeFileSync(join(directory, 'package.json'), '{ "type": "module" }\n')
}

/** `feed smon` goes to a port that does not stand in the command. */
function smonPort(port: number): string {
  return `case "$1 $2 $*" in *' --to '*) ;; 'feed smon '*) set -- "$@" --to 127.0.0.1:${port};; esac`
}

function unknown(program: string): string {
  return `echo "${program} $1 is neither in test/docs/world.ts nor in test/docs/instead.ts"\nexit 1`
}
