/**
 * `cinnabar cluster`: which node leads, how far the others are, and what keeps them from leading. Without a URL or a login it asks
 * the node on this machine, which answers also if no node leads; otherwise the leader, as any other command does.
 */
import { dirname } from 'node:path'
import type { Command } from 'commander'
import { type ClientClock, realClock } from '../../client/clock.ts'
import { StatusError, valueToJson } from '../../client/index.ts'
import type { NodeAccess } from '../../server/cluster/node-pass.ts'
import { askNode, findNode, type JsonRecord } from '../cluster-node.ts'
import { findServer } from '../configuration.ts'
import { runAndReport } from '../control.ts'
import { ExitCode, Failure } from '../failure.ts'
import { formatDuration, formatTime, jsonText, printable } from '../format.ts'
import type { LoginOptions } from '../login.ts'
import { type Column, formatTable, type JsonOptions } from '../output.ts'
import { type Cli, withConsumer, withLoginOptions } from '../session.ts'
import { withProgress } from '../terminal.ts'

const HAND_OVER = 'cluster.hand_over'
/** How long the node is asked whether another one leads, and how often: beyond this the operator has to look. */
const HAND_OVER_MS = 30_000
const POLL_MS = 250

const AFTER_CLUSTER = `
Without --url and a login, the node on this machine is asked, which answers whether it leads or not; the user who runs the
server, and root, may do so.`

const AFTER_FOUND = `
Needed only if the log of the cluster is lost or shorter than the databases, and not all nodes can be heard: then none leads by
itself. The database of this node becomes the beginning of a new log, so run it where the sequence in \`cinnabar cluster\` is the
highest. What only other nodes have is lost: their databases are set aside, never deleted.`

const AFTER_COPY = `
For a node whose database is damaged or in doubt, if another node leads. A node that is too far behind, new, or on an empty disk does
this by itself. The database that was here is set aside beside the copy when that is whole, never deleted. Ctrl-C ends this
command, and the node goes on.`

const COLUMNS: readonly Column[] = [
  { head: 'node' },
  { head: 'role' },
  { head: 'address' },
  { head: 'sequence', align: 'right' },
  { head: 'lag', align: 'right' },
  { head: 'version' },
  { head: '' },
]

export function addCluster(
  program: Command,
  cli: Cli,
  clock: ClientClock = realClock(),
  wallMs: () => number = Date.now,
): void {
  const { terminal } = cli
  const cluster = withLoginOptions(program.command('cluster'))
    .description('show which node leads and how far the others are; exits with 1 if none leads')
    .option('--json', 'print one JSON object')
    .addHelpText('after', AFTER_CLUSTER)
    .action(async (options: JsonOptions) => {
      const shown = (state: JsonRecord): Promise<void> => print(state, options.json)
      const own = await ownNode(options, terminal.env)
      const state = own && (await askNode(own, 'GET', '/cluster'))
      await (state === undefined ? withLeader(cli, options, shown) : shown(state))
    })
  withLoginOptions(cluster.command('hand-over'))
    .description('let another node lead, before this one is stopped or upgraded (admins only)')
    .action(async (options: LoginOptions) => {
      const own = await ownNode(options, terminal.env)
      const before = own && (await askNode(own, 'GET', '/cluster'))
      if (before !== undefined && before['leader'] !== before['node']) throw notHere(before)
      await withConsumer(cli, options, (consumer) => runAndReport(terminal, consumer, HAND_OVER, {}))
      if (own === undefined) return
      const leader = await withProgress(terminal, 'waiting for another node to lead', nextLeader(own))
      terminal.note(`${printable(leader)} leads now`)
    })
  cluster
    .command('found')
    .description('begin a new log with the database of the node on this machine, if no node leads')
    .option('--config <file>', "the server's configuration (CINNABAR_CONFIG)")
    .addHelpText('after', AFTER_FOUND)
    .action(async ({ config }: { config?: string }) => {
      const { dataDir } = await findServer(config, terminal.env)
      const own = findNode(dataDir)
      const founding = own && askNode(own, 'POST', '/found')
      const state = founding && (await withProgress(terminal, 'founding the log', founding))
      if (state === undefined) throw noNode(dataDir)
      terminal.note(`the log of ${printable(String(state['name']))} begins anew with the database of this node`)
    })
  cluster
    .command('copy')
    .description('replace the database of the node on this machine by a copy of that of the node that leads')
    .option('--config <file>', "the server's configuration (CINNABAR_CONFIG)")
    .addHelpText('after', AFTER_COPY)
    .action(async ({ config }: { config?: string }) => {
      const { dataDir } = await findServer(config, terminal.env)
      const own = findNode(dataDir)
      const asked = own && (await askNode(own, 'POST', '/copy'))
      if (own === undefined || asked === undefined) throw noNode(dataDir)
      terminal.note(`copying the database of ${printable(String(asked['leader']))}`)
      const copied = await copying(own, dataDir)
      if (copied['phase'] !== 'done') throw new Failure(ExitCode.FAILED, printable(String(copied['problem'])))
      const aside = copied['aside'] ? `; the one that was here is in ${copied['aside']}` : ''
      terminal.note(printable(`this node has the database of ${copied['leader']} (${mebibytes(copied)})${aside}`))
    })

  async function print(state: JsonRecord, isJson: boolean | undefined): Promise<void> {
    if (isJson) await terminal.print(jsonText(state))
    else {
      const table = formatTable(COLUMNS, nodesOf(state).map(rowOf), terminal.colors, terminal.screen?.size().columns)
      await terminal.print(`${headOf(state, wallMs())}\n\n${table}`)
    }
    if (!state['leader']) throw new Failure(ExitCode.FAILED, '')
  }

  /** Says how far the copy has come, until it has ended. Rejects with Failure if the node ends before. */
  async function copying(own: NodeAccess, dataDir: string): Promise<JsonRecord> {
    for (let said = 0; ; ) {
      const state = await askNode(own, 'GET', '/copy')
      if (state === undefined) throw noNode(dataDir)
      if (state['phase'] !== 'asked' && state['phase'] !== 'copying') return state
      const tenths = Math.floor((10 * Number(state['receivedBytes'])) / Math.max(1, Number(state['totalBytes'])))
      if (tenths > said && terminal.isWatched) terminal.note(`${tenths * 10} % of ${mebibytes(state)}`)
      said = Math.max(said, tenths)
      await pause()
    }
  }

  function pause(): Promise<void> {
    return new Promise((resolve) => clock.setTimeout(resolve, POLL_MS))
  }

  /** Rejects with Failure if no other node has taken over in time. */
  async function nextLeader(own: NodeAccess): Promise<string> {
    let state: JsonRecord | undefined
    for (let waitedMs = 0; waitedMs < HAND_OVER_MS; waitedMs += POLL_MS) {
      // A node that starts anew as a follower has another pass.
      const now = findNode(dirname(own.file))
      state = now && (await askNode(now, 'GET', '/cluster'))
      const leader = state?.['leader']
      if (typeof leader === 'string' && leader !== '' && leader !== state?.['node']) return leader
      await pause()
    }
    const still = state?.['leader'] ? 'this node still leads' : 'no node leads'
    const advice = '`cinnabar cluster` shows what keeps the others from leading, and the log of this node why it stayed'
    throw new Failure(ExitCode.FAILED, `${still} after ${HAND_OVER_MS / 1000} s: ${advice}`)
  }
}

/** The node on this machine, unless the command says which server it means, or as whom. Rejects with Failure. */
async function ownNode(options: LoginOptions, env: NodeJS.ProcessEnv): Promise<NodeAccess | undefined> {
  const { url, user, secretFile, tokenFile, cert, config } = options
  const variables = ['URL', 'USER', 'PASSWORD', 'TOKEN', 'CERT'].map((name) => env[`CINNABAR_${name}`])
  if ([url, user, secretFile, tokenFile, cert, ...variables].some((given) => given)) return undefined
  return findNode((await findServer(config, env)).dataDir)
}

async function withLeader(cli: Cli, options: LoginOptions, work: (state: JsonRecord) => Promise<void>): Promise<void> {
  await withConsumer(cli, options, async (consumer) => {
    const { value } = await consumer.query('producer.cluster').catch((error: unknown) => {
      if (!(error instanceof StatusError) || error.status !== 'NO_SUCH_METRIC') throw error
      const message = 'this server is not in a cluster (it has no section [cluster]), or you may not see it'
      throw new Failure(ExitCode.FAILED, message, { cause: error })
    })
    await work(valueToJson(value) as JsonRecord)
  })
}

function notHere({ node, leader }: JsonRecord): Failure {
  const message = leader
    ? `${node} does not lead: run this command on ${leader}, or as an admin with --user and --url`
    : 'no node leads, so there is nothing to hand over: `cinnabar cluster` shows why'
  return new Failure(ExitCode.FAILED, printable(message))
}

function noNode(dataDir: string): Failure {
  const advice = 'start it with `cinnabar serve`, and run this command on its machine with the same --config'
  return new Failure(
    ExitCode.FAILED,
    `no node of a cluster runs on this machine with its data in ${dataDir}: ${advice}`,
  )
}

const mebibytes = ({ totalBytes }: JsonRecord): string => `${(Number(totalBytes) / 2 ** 20).toFixed(1)} MiB`

function nodesOf({ nodes }: JsonRecord): readonly JsonRecord[] {
  return Array.isArray(nodes) ? (nodes as readonly JsonRecord[]) : []
}

function headOf({ name, leader, epoch, since }: JsonRecord, nowMs: number): string {
  const cluster = printable(`cluster ${name}`)
  if (!leader) return `${cluster}: no node leads`
  const forMs = Math.max(0, nowMs - Number(since) / 1000)
  const leading = printable(`${leader} leads`)
  return `${cluster}: ${leading} since ${formatTime(Number(since))} (${formatDuration(forMs)}), epoch ${epoch}`
}

function rowOf({ name, role, address, sequence, lag_ms, version, obstacle }: JsonRecord): string[] {
  const isHeard = role !== 'not heard'
  const lag = role === 'follower' ? formatDuration(Number(lag_ms)) : '-'
  const texts = [name, role, address || '-'].map((text) => printable(String(text)))
  return [
    ...texts,
    isHeard ? String(sequence) : '-',
    lag,
    printable(String(version || '-')),
    printable(String(obstacle)),
  ]
}
