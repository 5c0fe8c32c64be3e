/** `cinnabar serve`: configuration, start, what is printed, signals, exit codes: 0 stopped, 1 failed, 2 bad configuration. */
import { closeSync, readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isatty } from 'node:tty'
import { setFlagsFromString } from 'node:v8'
import { AuthError } from '../../auth/errors.ts'
import { StorageError } from '../../storage/store.ts'
import { formatAddress } from '../kernel/core/address.ts'
import { ForeignCode } from '../kernel/core/faults.ts'
import { ListenError } from '../kernel/core/listen.ts'
import { createLogger, type Logger } from '../kernel/core/log.ts'
import { FileError } from '../kernel/core/watched-file.ts'
import { ConfigError, ReloadableConfig } from './config.ts'
import { warnOfOtherData } from './first-run.ts'
import { listenerUrls, type RunningServer, startServer } from './server.ts'

/** Errors whose message says everything. */
const EXPECTED = [AuthError, ConfigError, ListenError, StorageError, FileError] as const
/** A stop that takes longer is cut off: everything that was acknowledged is stored already. */
const STOP_MS = 5_000
/** A node hands over what it has accepted, too: a nats-server that has lost the lead of the log needs ten seconds to notice it. */
const NODE_STOP_MS = 25_000

/** By how much the heap grows, in percent, before all of it is looked at for garbage (decision 36). */
const HEAP_GROWTH = 50

export interface ServeOptions {
  readonly config?: string | undefined
  /** Variables that take precedence over those of the environment, from options of the command line. */
  readonly overrides?: Readonly<Record<string, string>> | undefined
  /** The words that begin a command line of this program, such as `npx cinnabar`. */
  readonly program: string
  /** The operator says that the data is older than what was last served. */
  readonly restored?: boolean | undefined
}

/** A server, or a node of a cluster, which has a server while it leads. */
interface Running {
  readonly server: RunningServer | undefined
  /** The configuration was read again while there is no server. */
  reload?(): void
  stop(): Promise<void>
}

/** Runs until a signal or a failure; returns the exit code. */
export async function serve(options: ServeOptions): Promise<number> {
  setFlagsFromString(`--heap-growing-percent=${HEAP_GROWTH}`)
  closeInherited()
  const terminals = new Terminals()
  const reloadable = readConfig(options)
  if (reloadable === undefined) return 2
  const { config } = reloadable
  const log = createLogger(config.log.level)
  let end: (code: number) => void = () => {}
  const ended = new Promise<number>((resolve) => {
    end = resolve
  })
  let running: Running | undefined
  const foreign = new ForeignCode()
  process.on('uncaughtException', (error) => {
    if (!foreign.take(error)) abort(error, log, running?.server)
  })
  try {
    warnOfOtherData({ ...config.producer, configFile: reloadable.file }, log)
    const onFailed = (error: Error): void => fail(error, log, end)
    const started = start({ options, reloadable, log, foreign, onFailed })
    const reload = (): Promise<unknown> => started.then((running) => reloadAll(running, reloadable, log))
    process.on('SIGHUP', () => {
      // Nobody else ends a server whose terminal is gone.
      if (terminals.hungUp.length > 0) end(0)
      else reload().catch((error: unknown) => unlessReported(error, log))
    })
    running = await started
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => end(0))
    const code = await ended
    const cutOff = cutOffAfter(code, terminals, config.cluster === undefined ? STOP_MS : NODE_STOP_MS)
    await running.stop()
    cutOff.unref()
    if (code === 0) log.info('stopped cleanly')
    terminals.closeHungUp()
    exitAtOnce()
    return code
  } catch (error) {
    const code = notStarted(error)
    cutOffAfter(code, terminals, STOP_MS).unref()
    return code
  }
}

interface StartOptions {
  readonly options: ServeOptions
  readonly reloadable: ReloadableConfig
  readonly log: Logger
  readonly foreign: ForeignCode
  readonly onFailed: (error: Error) => void
}

/** Starts what is configured, and prints where it is. */
async function start({ options, reloadable, log, foreign, onFailed }: StartOptions): Promise<Running> {
  const { config } = reloadable
  const { restored = false } = options
  const adminPassword = process.env['CINNABAR_ADMIN_PASSWORD']
  const common = { config, reloadable, log, adminPassword, restored, foreign }
  const print = (server: RunningServer): void => void process.stdout.write(greeting(server, reloadable, options))
  if (config.cluster === undefined) {
    const server = await startServer({ ...common, onFailed })
    print(server)
    return { server, stop: () => server.stop() }
  }
  // Only here, so that nothing of NATS is loaded by a server that is alone.
  const { startNode } = await import('./node.ts')
  const { cluster } = config
  let isFirst = true
  const onLeads = (server: RunningServer): void => {
    if (isFirst || server.newPassword !== undefined) print(server)
    isFirst = false
  }
  const names = cluster.nodes.map(({ name }) => name).join(', ')
  process.stdout.write(`cinnabar node:    ${cluster.node} of cluster ${cluster.name} (${names})\n`)
  const node = await startNode({ ...common, cluster, onLeads })
  node.ended.catch(onFailed)
  return node
}

/** A node that follows has no server: it reads the configuration when it leads, but for what concerns its feeds. */
async function reloadAll(running: Running, reloadable: ReloadableConfig, log: Logger): Promise<void> {
  const { server } = running
  if (server === undefined) {
    reloadable.take(reloadable.readAgain((file) => readFileSync(file)))
    running.reload?.()
    log.info('the configuration was read again')
  } else await server.parts.reloader?.reload()
}

/** Ends the process even if a plug-in goes on. */
function cutOffAfter(code: number, terminals: Terminals, ms: number): NodeJS.Timeout {
  return setTimeout(() => {
    terminals.closeHungUp()
    process.exit(code)
  }, ms)
}

/**
 * Ends the process as soon as nothing is left to do. Without this, Node first takes its environment apart, and Node 20.20 was once
 * seen to go round in circles there (uv_run below Environment::CleanupHandles), where no timer of ours can end it.
 */
function exitAtOnce(): void {
  process.once('exit', () => process.exit())
}

/** Says why the start has failed, and returns the exit code. */
function notStarted(error: unknown): number {
  if (error instanceof AuthError) {
    process.stderr.write(`cinnabar: CINNABAR_ADMIN_PASSWORD cannot be used: ${error.message}\n`)
    return 2
  }
  if (error instanceof ConfigError) return refused(error)
  if (!EXPECTED.some((type) => error instanceof type)) throw error
  process.stderr.write(`cinnabar: ${(error as Error).message}\n`)
  return 1
}

const STANDARD_STREAMS = [0, 1, 2]

/** The terminals that the server was started from, by their descriptors. One that has hung up is no terminal any more. */
class Terminals {
  readonly #atStart = STANDARD_STREAMS.filter((descriptor) => isatty(descriptor))

  get hungUp(): readonly number[] {
    return this.#atStart.filter((descriptor) => !isatty(descriptor))
  }

  /** To be called last: Node aborts the process if it can see such a terminal at its exit and not set it back. */
  closeHungUp(): void {
    for (const descriptor of this.hungUp) closeSync(descriptor)
  }
}

/** A configuration that cannot be used, and a start that failed, are reported where they happen. */
function unlessReported(error: unknown, log: Logger): void {
  if (EXPECTED.some((type) => error instanceof type)) return
  log.error(
    { err: error },
    'reading the configuration again failed, and a part of it may be in force: restart the server when you can',
  )
}

/** The descriptors that systemd hands over begin here (sd_listen_fds). */
const FIRST_HANDED_OVER = 3
const DESCRIPTORS = '/proc/self/fdinfo'
const O_CLOEXEC = 0o2000000

/**
 * Closes the descriptors that the starting program has left open, because every program that the server runs would inherit them.
 * To be called before anything is opened. Node opens all of its own with O_CLOEXEC. Does nothing where there is no /proc.
 */
function closeInherited(): void {
  const { LISTEN_PID, LISTEN_FDS } = process.env
  const handedOver = LISTEN_PID === String(process.pid) ? Number(LISTEN_FDS) || 0 : 0
  for (const name of descriptors()) {
    const descriptor = Number(name)
    if (descriptor < FIRST_HANDED_OVER + handedOver) continue
    try {
      const [, flags = ''] = /^flags:\s*([0-7]+)$/m.exec(readFileSync(`${DESCRIPTORS}/${name}`, 'utf8')) ?? []
      if ((Number.parseInt(flags, 8) & O_CLOEXEC) === 0) closeSync(descriptor)
    } catch (error) {
      // The one with which the list was read is gone, or this process may not look at it.
      if (!(error instanceof Error && 'code' in error && typeof error.code === 'string')) throw error
    }
  }
}

/** Empty where they cannot be listed. */
function descriptors(): string[] {
  try {
    return readdirSync(DESCRIPTORS)
  } catch {
    return []
  }
}

function fail(error: Error, log: Logger, end: (code: number) => void): void {
  log.fatal(
    { err: error },
    'storing failed: nothing more is acknowledged and the server ends; see the disk, then start again',
  )
  end(1)
}

/**
 * What no session, channel or sensor has caused (server/kernel/core/faults.ts) leaves the server in a state that nobody knows. So it
 * ends. Unhandled rejections come here too.
 */
function abort(error: unknown, log: Logger, server: RunningServer | undefined): void {
  log.fatal(
    { err: error },
    'unexpected error: the server ends; what it has acknowledged is stored, and the next start reports what is missing',
  )
  const exit = (): never => process.exit(1)
  setTimeout(exit, STOP_MS)
  if (server === undefined) exit()
  else server.abort().then(exit, exit)
}

function readConfig({ config, overrides }: ServeOptions): ReloadableConfig | undefined {
  try {
    return new ReloadableConfig({ file: config, env: { ...process.env, ...overrides } })
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    refused(error)
    return undefined
  }
}

function refused({ message }: ConfigError): number {
  process.stderr.write(`cinnabar: the configuration is not right:\n${message}\n`)
  return 2
}

/** Where a browser finds the console; with pages of the operator `/` may be one of them. */
function consoleUrl({ http, https }: RunningServer, hasPages: boolean): string | undefined {
  const address = https ?? http
  if (address === undefined) return undefined
  return `${https === undefined ? 'http' : 'https'}://${formatAddress(address)}/${hasPages ? 'console/' : ''}`
}

const DATA_DIR = 'CINNABAR_PRODUCER_DATA_DIR'

/** Where it listens, where the data is, the admin's password (once), the console, what commands need to find it, commands to try. */
function greeting(
  server: RunningServer,
  { config: { producer, http }, file }: ReloadableConfig,
  { overrides, program }: ServeOptions,
): string {
  const { newPassword, tcp } = server
  const password =
    newPassword === undefined
      ? `set before; \`${program} user passwd admin\` sets another`
      : `${newPassword}  (shown only now)`
  // In another terminal these are not set, and another directory is the current one.
  const given = process.env[DATA_DIR] === undefined ? {} : { [DATA_DIR]: resolve(producer.dataDir) }
  const needed: Record<string, string> = { ...(file ? { CINNABAR_CONFIG: resolve(file) } : {}), ...given, ...overrides }
  // If it was to be any port.
  if (tcp && 'CINNABAR_LISTEN_TCP' in needed) needed['CINNABAR_LISTEN_TCP'] = formatAddress(tcp)
  const variables = Object.entries(needed).map(([name, value]) => `${name}='${value.replaceAll("'", `'\\''`)}'`)
  const page = http.console ? consoleUrl(server, http.pages !== undefined) : undefined
  return [
    `cinnabar listens: ${listenerUrls(server, server.sources).join('  ')}`,
    `data lies in:     ${resolve(producer.dataDir)}`,
    `admin password:   ${password}`,
    ...(page === undefined ? [] : [`console:          ${page}`]),
    ...(variables.length > 0 ? [`first:            export ${variables.join(' ')}`] : []),
    `try:              ${program} top`,
    `                  ${program} watch host.load.one    ${program} channels`,
    '',
  ].join('\n')
}
