/** What stands between this program and the producer: layers that are asked for, and the certificates of TLS. */
import { readFileSync } from 'node:fs'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { ConnectOptions } from '../client/index.ts'
import { ExitCode, Failure } from './failure.ts'
import { warnIfOpen } from './secret-file.ts'
import type { Terminal } from './terminal.ts'

export interface LinkOptions {
  readonly wrap?: readonly Layer[] | undefined
  /** Files in PEM. */
  readonly ca?: string | undefined
  readonly cert?: string | undefined
  readonly key?: string | undefined
}

export type Link = Pick<ConnectOptions, 'wrap' | 'tls'>

const LAYERS = ['tls', 'deflate'] as const
type Layer = (typeof LAYERS)[number]

export function withLinkOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--wrap <layers>', 'layers to lay on, in this order, as tls,deflate (CINNABAR_WRAP)')
        .choices(LAYERS)
        .argParser((text: string, before: readonly Layer[] = []) => [...before, ...layers(text)]),
    )
    .option('--ca <file>', "authorities for the server's certificate (CINNABAR_CA; else those of Node)")
    .option('--cert <file>', 'certificate to log in with, and its chain (CINNABAR_CERT)')
    .option('--key <file>', 'its private key (CINNABAR_KEY)')
}

/** The options over the environment. */
export function namedLink(options: LinkOptions, env: NodeJS.ProcessEnv): LinkOptions {
  return {
    wrap: options.wrap ?? (env['CINNABAR_WRAP'] ? fromEnvironment(env['CINNABAR_WRAP']) : undefined),
    ca: options.ca ?? (env['CINNABAR_CA'] || undefined),
    cert: options.cert ?? (env['CINNABAR_CERT'] || undefined),
    key: options.key ?? (env['CINNABAR_KEY'] || undefined),
  }
}

/** Throws Failure where a file cannot be read; the client reads them, anew for each connection. */
export function checkedLink({ wrap, ca, cert, key }: LinkOptions, terminal: Pick<Terminal, 'note'>): Link {
  if ((cert === undefined) !== (key === undefined)) {
    throw new Failure(ExitCode.USAGE, 'a certificate and its private key go together: name both, --cert and --key')
  }
  check(ca, 'authorities')
  check(cert, 'certificate')
  check(key, 'private key')
  if (key !== undefined) warnIfOpen(key, terminal)
  const isNamed = ca !== undefined || cert !== undefined
  return { ...(wrap ? { wrap } : {}), ...(isNamed ? { tls: { ca, cert, key } } : {}) }
}

function check(file: string | undefined, what: string): void {
  if (file === undefined) return
  try {
    readFileSync(file)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `no ${what} can be read from ${file}: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

function layers(text: string): Layer[] {
  return text.split(',').map((word) => {
    const layer = LAYERS.find((one) => one === word.trim())
    if (layer) return layer
    throw new InvalidArgumentError(`Allowed are ${LAYERS.join(' and ')}, with a comma between them.`)
  })
}

function fromEnvironment(text: string): Layer[] {
  try {
    return layers(text)
  } catch (error) {
    throw new Failure(ExitCode.USAGE, `CINNABAR_WRAP: ${(error as Error).message}`, { cause: error })
  }
}
