/**
 * `cinnabar demo`: shows in half a minute what Cinnabar promises: a server is killed three times, and no value is lost. With
 * `--tree` these are servers above servers, one of each level is killed; with `--cluster` three nodes, of which the one that leads is
 * killed; with `--console` it leaves a server open instead, to be looked at in a browser.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { wholeNumber } from '../arguments.ts'
import { demonstrateCluster } from '../demo/cluster.ts'
import { demonstrateServer } from '../demo/kills.ts'
import { DemoOutput } from '../demo/output.ts'
import { Scenario } from '../demo/scenario.ts'
import { DemoServer } from '../demo/server.ts'
import { Showcase } from '../demo/showcase.ts'
import { demonstrateTree } from '../demo/tree.ts'
import { ExitCode, Failure } from '../failure.ts'
import { resolveLogin } from '../login.ts'
import type { Cli } from '../session.ts'

const SECONDS = 30
/** After more, the values that wait for the paused consumer would not fit into its channel. */
const MAX_SECONDS = 600
/** How long to wait for the end of the server after a connection to it was lost. */
const SERVER_END_MS = 5_000

interface DemoOptions {
  readonly seconds: number
  readonly tree?: true
  readonly cluster?: true
}

export function addDemo(program: Command, cli: Cli): void {
  const seconds = wholeNumber(1, MAX_SECONDS, `a whole number from 1 to ${MAX_SECONDS}`)
  program
    .command('demo')
    .description('kill a server of its own three times while values pass through it, and count what is lost')
    .option('--seconds <n>', 'approximate duration', seconds, SECONDS)
    .addOption(
      new Option('--tree', 'the same with servers above servers: one of each of three levels is killed').conflicts(
        'cluster',
      ),
    )
    .option('--cluster', 'the same with three nodes and three nats-servers: the node that leads is killed')
    .addOption(
      new Option('--console', 'leave a server with hosts, channels and a console open instead').conflicts([
        'seconds',
        'tree',
        'cluster',
      ]),
    )
    .action(({ console, ...options }: DemoOptions & { console?: true }) =>
      console ? showConsole(cli) : runDemo(cli, options),
    )
}

/** Leaves a server open until Ctrl-C, which is no failure. Rejects with Failure if the server ends by itself. */
async function showConsole({ terminal, connect }: Cli): Promise<void> {
  let undo = (): void => {}
  const interrupted = new Promise<void>((resolve) => {
    undo = terminal.onInterrupt(resolve)
  })
  const server = await DemoServer.create({ hasConsole: true })
  const login = () => resolveLogin({ config: server.config }, { ...terminal, env: {} })
  const showcase = new Showcase({ server, login, connect })
  try {
    const opened = showcase.open().then(async () => {
      await terminal.print(
        [
          `the console is at:  http://127.0.0.1:${server.httpPort}/`,
          'user:               admin',
          `password:           ${server.adminPassword}  (made for this run)`,
          `Ctrl-C ends the server, process ${server.pid}, and removes its data in ${server.directory}`,
        ].join('\n'),
      )
      await showcase.failed
    })
    await Promise.race([opened, server.failed, interrupted])
  } finally {
    undo()
    await showcase.close()
    await server.remove()
  }
}

/** Starts servers and removes them at the end, however that comes. Rejects with Failure unless everything balanced. */
async function runDemo({ terminal, connect }: Cli, { seconds, tree, cluster }: DemoOptions): Promise<void> {
  const ending = new AbortController()
  const { signal } = ending
  const interrupted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason))
  })
  const undo = terminal.onInterrupt(() =>
    ending.abort(new Failure(ExitCode.FAILED, 'interrupted: nothing has been proven')),
  )
  // Only the server's own configuration and directory count, not the environment.
  const logIn = ({ config }: DemoServer) => resolveLogin({ config }, { ...terminal, env: {} })
  const demonstration = await (tree
    ? demonstrateTree(connect, logIn)
    : cluster
      ? demonstrateCluster(connect)
      : demonstrateServer(connect, logIn))
  const output = new DemoOutput(terminal)
  const onFailure = (error: Error) => ending.abort(error)
  const scenario = new Scenario({ demonstration, connect, output, seconds, signal, onFailure })
  try {
    await Promise.race([scenario.run(), scenario.failed, interrupted])
  } catch (error) {
    // When a server dies its connections end first, and its end is reported later; that is the cause to be shown.
    if (!(error instanceof Failure))
      await Promise.race([scenario.failed, sleep(SERVER_END_MS, undefined, { ref: false })])
    throw error
  } finally {
    undo()
    ending.abort()
    await scenario.close()
  }
}
