/**
 * The steps of the Dockerfile, as they stand there, on the Node that it names: in mount namespaces whose /opt, /usr/local/bin and
 * /var/lib are those of an image, with a user `node`, and then the server in a network namespace of its own, with its health check.
 * No image is made, and what Debian has is this machine's.
 */
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Ended, runToEnd } from '../support/run-to-end.ts'
import { instructionsOf, sentPaths } from './dockerfile.ts'

const ROOT = new URL('../..', import.meta.url).pathname
const STEPS_MS = 600_000
/** Below the directory of a stage, what an image would have there. */
const ITS_OWN = ['opt', 'usr/local/bin', 'var/lib']
const NODE_USER = 'node:x:1000:1000::/home/node:/bin/sh\n'
/** So often the health check is tried, with half a second between two. */
const CHECKS = 240

const instructions = instructionsOf(readFileSync(join(ROOT, 'Dockerfile'), 'utf8'))
const directory = mkdtempSync(join(tmpdir(), 'cinnabar-image-'))
const context = join(directory, 'context')
const stageAt = (stage: number) => join(directory, `stage-${stage}`)
const versions = instructions.flatMap(({ name, rest }) => (name === 'FROM' ? [/^node:(\d+)/.exec(rest)?.[1]] : []))

const canMount = (await runToEnd('unshare', ['--mount', '--net', 'true'], {})).code === 0
if (!canMount) console.warn('the steps of the Dockerfile are not run: mount namespaces need root on Linux')

/** Runs a script where the directories of a stage are in their places. */
function within(stage: number, script: string): Promise<Ended> {
  const mounts = [
    ...ITS_OWN.map((path) => `mount --bind ${join(stageAt(stage), path)} /${path}`),
    `mount --bind ${join(directory, 'passwd')} /etc/passwd`,
    `mount --bind ${join(directory, 'group')} /etc/group`,
    'mkdir -p /opt/cinnabar',
    'cd /opt/cinnabar',
  ]
  const path = `${join(directory, 'node/node_modules/node/bin')}:${process.env['PATH']}`
  const args = ['--mount', '--propagation', 'private', 'sh', '-ec', [...mounts, script].join('\n')]
  return runToEnd('unshare', args, { env: { ...process.env, PATH: path } })
}

/** A COPY as a command: from what is sent to the daemon, or from the first stage. */
function copied(rest: string): string {
  const [first = '', ...others] = rest.split(' ')
  const [base, paths] = first === '--from=build' ? [stageAt(0), others] : [`${context}/`, [first, ...others]]
  const to = paths.pop() as string
  return `cp -a ${paths.map((path) => `${base}${path}`).join(' ')} ${to}`
}

/** What the stages are built with, in their order. */
function stages(): string[] {
  const scripts: string[][] = []
  for (const { name, rest } of instructions) {
    if (name === 'FROM') scripts.push([])
    else if (name === 'RUN') scripts.at(-1)?.push(`( ${rest} )`)
    else if (name === 'COPY') scripts.at(-1)?.push(copied(rest))
  }
  return scripts.map((commands) => commands.join('\n'))
}

const last = (name: string) => instructions.findLast((one) => one.name === name)?.rest ?? ''

/** A list of words, as JSON, for a shell. */
function quoted(list: string): string {
  return (JSON.parse(list) as string[]).map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
}

/** Starts the server as the image does, waits until it is healthy, asks the command for its version, and stops it. */
function served(): string {
  const variables = instructions.filter(({ name }) => name === 'ENV').map(({ rest }) => `export ${rest}`)
  const check = quoted(/CMD (\[.+\])$/.exec(last('HEALTHCHECK'))?.[1] ?? '')
  const script = [
    'ip link set lo up',
    ...variables,
    `as_user="setpriv --reuid=${last('USER')} --regid=${last('USER')} --clear-groups"`,
    `HOME=/ $as_user ${quoted(last('CMD'))} & server=$!`,
    'left=$CHECKS',
    `until $as_user ${check}; do left=$((left - 1)); [ $left -gt 0 ]; kill -0 $server; sleep 0.5; done`,
    'echo healthy',
    'cinnabar --version',
    `kill -s ${last('STOPSIGNAL').replace(/^SIG/, '')} $server`,
    'wait $server',
    'echo stopped',
  ]
  // With its first process everything else there ends, whatever has failed.
  return `CHECKS=${CHECKS} exec unshare --net --pid --fork --kill-child sh -ec ${quoted(JSON.stringify([script.join('\n')]))}`
}

beforeAll(async () => {
  if (!canMount) return
  // The user `node` has to reach what is below it.
  chmodSync(directory, 0o755)
  for (const stage of versions.keys())
    for (const path of ITS_OWN) mkdirSync(join(stageAt(stage), path), { recursive: true })
  mkdirSync(context)
  for (const path of sentPaths(readFileSync(join(ROOT, '.dockerignore'), 'utf8')))
    cpSync(join(ROOT, path), join(context, path), { recursive: true })
  for (const [name, line] of [['passwd', NODE_USER] as const, ['group', 'node:x:1000:\n'] as const]) {
    copyFileSync(join('/etc', name), join(directory, name))
    writeFileSync(join(directory, name), line, { flag: 'a' })
  }
  const { code, out } = await runToEnd(
    'npm',
    ['install', '--silent', '--prefix', join(directory, 'node'), `node@${versions[0]}`],
    {},
  )
  if (code !== 0) throw new Error(out)
}, STEPS_MS)
afterAll(() => rmSync(directory, { recursive: true }))

// Only root on Linux mounts anything.
it.skipIf(!canMount)(
  'builds, starts as its user, is healthy and stops, with nothing but what is sent and copied',
  async () => {
    expect(new Set(versions).size).toBe(1)
    for (const [stage, script] of stages().entries()) {
      const { code, out } = await within(stage, script)
      expect(code, out).toBe(0)
    }
    const { code, out } = await within(versions.length - 1, served())
    expect(code, out).toBe(0)
    expect(out).toMatch(/healthy\n\S+\n(.*\n)*stopped\n/)
  },
  STEPS_MS,
)
