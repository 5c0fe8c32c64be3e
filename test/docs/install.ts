import { copyFileSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiled } from '../support/compiled.ts'
import { SERVER_PROGRAM } from '../support/program.ts'
import { ROOT } from './page.ts'

export const SERVE = 'cinnabar serve'
/** The packages of this tree, by their names. */
const PACKAGES = { cinnabar: ROOT, '@cinnabar/client': join(ROOT, 'packages/client') }

/** `feedPort`: where the page's server may take smon. */
export function installPrograms(folder: string, feedPort: number): void {
  const node = `exec '${process.execPath}'`
  const tsx = `${node} --import '${import.meta.resolve('tsx')}'`
  // As npm tells what it runs, from which the program knows how it was called.
  const byNpm = (event: string) => `export npm_lifecycle_event=${event} npm_package_name=cinnabar; exec`
  const programs = {
    cinnabar: `${smonPort(feedPort)}\n${node} '${join(programFolder(folder), 'cinnabar')}' "$@"`,
    npx:
      `case $1 in cinnabar) ${byNpm('npx')} "$@";; tsx) shift; ${tsx} "$@";; ` +
      `cinnabar-mcp) shift; ${node} '${compiled('packages/mcp/cinnabar-mcp.ts')}' "$@";; esac\n${unknown('npx')}`,
    npm: `case $1 in start) ${byNpm('start')} ${SERVE};; esac\n${unknown('npm')}`,
  }
  mkdirSync(programFolder(folder))
  symlinkSync(SERVER_PROGRAM, join(programFolder(folder), 'cinnabar'))
  for (const [name, script] of Object.entries(programs)) {
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  }
}

/** What stands in the PATH of somebody who has installed it, behind the commands above. */
export function programFolder(folder: string): string {
  return join(folder, 'installed')
}

/** As after the installation of both packages, and with the agents of a clone. */
export function installPackages(directory: string): void {
  for (const [name, source] of Object.entries(PACKAGES)) {
    const installed = join(directory, 'node_modules', name)
    mkdirSync(installed, { recursive: true })
    copyFileSync(join(source, 'package.json'), join(installed, 'package.json'))
    // Both are compiled from the same sources, to the same places.
    symlinkSync(join(ROOT, 'dist'), join(installed, 'dist'), 'dir')
  }
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
