/** `npm run conformance`: plays the scripts against a producer, or against Cinnabar itself. `--help` says how. */
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startOwnServer } from './own-server.ts'
import { describeOutcome, summary } from './report.ts'
import { readScripts, type Script, type Way } from './script.ts'
import type { Credentials } from './stage.ts'
import { type Outcome, Run, type TargetOptions, waysOf } from './target.ts'

const HELP = `npm run conformance -- [ADDRESS] [options]

ADDRESS is tcp://host:port, tls://host:port, ws://host:port/monitor or wss://host:port/monitor. Without one, Cinnabar
is started and tested in all ways.

  --user NAME              whom to log in as; or CINNABAR_USER
  --secret-file FILE       a file with the password; or CINNABAR_PASSWORD
  --other NAME             a second user, for what belongs to somebody else
  --other-secret-file FILE a file with that one's password
  --token-file FILE        a file with a token of the user
  --cert FILE, --key FILE  a client certificate of the user, and its key (PEM)
  --ca FILE                authorities for the producer's certificate (PEM); else those of Node
  --dial HOST[:PORT]       where the producer connects to for section 14, an address of this machine (127.0.0.1)
  --dial-cert FILE, --dial-key FILE   a certificate for that, for tls:// and wss:// (PEM)
  --polled METRIC          a polled metric that takes interval_ms (host.load.one)
  --subprotocol NAME       monitoring.xdr or monitoring.json; both, if left out (ws:// only)
  --only WORD              scripts whose name, title or clause has this word
  --list                   names the scripts and ends
  --byte-by-byte           sends frames in pieces of one byte
  --patience MS            how long a step waits for what it expects (15000)

Give it a user of its own: it deletes every channel of that user. The exit code is 0: all that applies is ok,
1: something failed, 2: it could not be tried.`

const options = {
  help: { type: 'boolean' },
  user: { type: 'string' },
  'secret-file': { type: 'string' },
  other: { type: 'string' },
  'other-secret-file': { type: 'string' },
  'token-file': { type: 'string' },
  cert: { type: 'string' },
  key: { type: 'string' },
  ca: { type: 'string' },
  dial: { type: 'string' },
  'dial-cert': { type: 'string' },
  'dial-key': { type: 'string' },
  polled: { type: 'string' },
  subprotocol: { type: 'string' },
  only: { type: 'string' },
  list: { type: 'boolean' },
  'byte-by-byte': { type: 'boolean' },
  patience: { type: 'string' },
} as const

type Given = ReturnType<typeof parseArgs<{ options: typeof options; allowPositionals: true }>>['values']

interface Plan {
  readonly address: string
  readonly ways: readonly Way[]
  readonly as: TargetOptions
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const scripts = chosen(values.only)
  if (values.list) {
    for (const { name, clauses, title } of scripts) console.log(`${name}  [MON ${clauses.join(', ')}] ${title}`)
    return 0
  }
  const address = positionals[0]
  if (address !== undefined) {
    const plan = { address, ways: waysOf(address, values.subprotocol), as: optionsOf(values) }
    return conclude(await playAll([plan], scripts, values), values)
  }
  const server = await startOwnServer()
  try {
    const as = await server.certified('kit')
    const plans: Plan[] = [
      { address: server.tcp, ways: ['tcp'], as },
      { address: server.ws, ways: ['ws-xdr', 'ws-json'], as },
      { address: server.tls, ways: ['tcp'], as },
      { address: server.wss, ways: ['ws-xdr', 'ws-json'], as },
    ]
    return conclude(await playAll(plans, scripts, values), values)
  } finally {
    await server.stop()
  }
}

function chosen(only: string | undefined): Script[] {
  const all = readScripts(new URL('scripts/', import.meta.url))
  const word = only?.toLowerCase()
  const scripts = all.filter(({ name, title, clauses }) => {
    return word === undefined || clauses.includes(word) || `${name} ${title}`.toLowerCase().includes(word)
  })
  if (scripts.length === 0) throw new Error(`no script has the word ${only}; --list names them all`)
  return scripts
}

async function playAll(plans: readonly Plan[], scripts: readonly Script[], given: Given): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  const patienceMs = given.patience === undefined ? undefined : Number(given.patience)
  if (patienceMs !== undefined && !(patienceMs > 0))
    throw new Error(`--patience takes milliseconds, not ${given.patience}`)
  for (const { address, ways, as } of plans) {
    for (const way of ways) {
      const run = await Run.begin(address, way, {
        ...as,
        byteByByte: given['byte-by-byte'] ?? false,
        ...(given.polled === undefined ? {} : { polled: given.polled }),
        ...(patienceMs === undefined ? {} : { patienceMs }),
      })
      for (const script of scripts) {
        const outcome = await run.play(script)
        console.log(describeOutcome(outcome))
        outcomes.push(outcome)
      }
    }
  }
  return outcomes
}

function conclude(outcomes: readonly Outcome[], { only }: Given): number {
  console.log(summary(outcomes, only === undefined))
  return outcomes.some(({ result }) => result === 'failed') ? 1 : 0
}

function optionsOf(given: Given): TargetOptions {
  const user = credentials(given.user ?? process.env['CINNABAR_USER'], given['secret-file'], 'CINNABAR_PASSWORD')
  if (user === undefined) throw new Error('whom to log in as? --user NAME --secret-file FILE')
  const other = credentials(given.other, given['other-secret-file'], 'CINNABAR_OTHER_PASSWORD')
  const token = textOf(given['token-file'])?.trim()
  const certificate = pairOf(given.cert, given.key)
  const { hostname, port } = new URL(`tcp://${given.dial ?? '127.0.0.1'}`)
  const certified = pairOf(given['dial-cert'], given['dial-key'])
  const dial = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port), certificate: certified }
  return { user, other, token, certificate, ca: textOf(given.ca), dial }
}

function textOf(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readFileSync(file, 'utf8')
}

function pairOf(certFile: string | undefined, keyFile: string | undefined): TargetOptions['certificate'] {
  const cert = textOf(certFile)
  const key = textOf(keyFile)
  if (cert !== undefined && key !== undefined) return { cert, key }
  if (cert === key) return undefined
  throw new Error('a certificate needs its key, and a key its certificate')
}

function credentials(user: string | undefined, file: string | undefined, variable: string): Credentials | undefined {
  if (user === undefined) return undefined
  const secret = file === undefined ? process.env[variable] : readFileSync(file, 'utf8').replace(/\r?\n$/, '')
  if (!secret) throw new Error(`no password for ${user}: a file, or the environment variable ${variable}`)
  return { user, secret }
}
