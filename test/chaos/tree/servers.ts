/** The servers of a tree, from the lowest to the uppermost, the links between them, and what they say of themselves. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../rig/patience.ts'
import { tokenOfPublisher } from '../../rig/prometheus-stack.ts'
import { FED, PromisedFeed } from '../../rig/promised-feed.ts'
import { SmallDisk } from '../../rig/small-disk.ts'
import { args, command, str, type } from '../../support/bytes.ts'
import { freePort } from '../../support/free-port.ts'
import { Random } from '../../support/random.ts'
import { decoded, type Json } from '../../support/records.ts'
import { PASSWORD, ServerProcess } from '../../support/server-process.ts'
import { CutLink } from './cut-link.ts'

/** What is fed, as our servers name it. */
const FAMILY = 'prometheus.*'
export const METRIC = `prometheus.${FED}`
/** The name of the consumer's channel. */
export const CONSUMER = 'consumer'

/** The one tenant may fill a disk, and values come from the feed alone. */
const SETTINGS = '[quota]\nqueued_bytes = 0\n[gmetric]\nlisten = ""\n'
const DISK_MIB = 64

/** A server of the tree. */
export interface Level {
  readonly name: string
  readonly server: ServerProcess
  /** What it calls the server below it; empty for the lowest. */
  readonly below: string
  /** Undefined if it shares the disk of the machine. */
  readonly disk: SmallDisk | undefined
}

export class Tree {
  readonly levels: readonly Level[]
  /** Each between a level and the next one. */
  readonly links: readonly CutLink[]
  readonly feed: PromisedFeed

  private constructor(levels: readonly Level[], links: readonly CutLink[], feed: PromisedFeed) {
    this.levels = levels
    this.links = links
    this.feed = feed
  }

  /** None of the servers runs yet. `hasDisks`: each has a small disk of its own. */
  static async open({ seed, hasDisks }: { readonly seed: number; readonly hasDisks: boolean }): Promise<Tree> {
    const random = new Random(seed)
    const ports = [await freePort(), await freePort(), await freePort()] as const
    const http = await freePort()
    const links = [await CutLink.open(ports[0], random), await CutLink.open(ports[1], random)] as const
    const levelOf = (name: string, below: string, server: ServerProcess): Level => {
      const disk = hasDisks ? SmallDisk.mount(join(server.directory, 'data'), DISK_MIB) : undefined
      return { name, below, server, disk }
    }
    const lowest = new ServerProcess(SETTINGS, { tcp: ports[0], http })
    const secret = join(lowest.directory, 'secret')
    writeFileSync(secret, PASSWORD)
    const middle = new ServerProcess(upstream('rack1', links[0].port, secret), { tcp: ports[1] })
    const uppermost = new ServerProcess(upstream('east', links[1].port, secret), { tcp: ports[2] })
    const levels = [
      levelOf('lowest', '', lowest),
      levelOf('middle', 'rack1', middle),
      levelOf('uppermost', 'east', uppermost),
    ]
    return new Tree(levels, links, new PromisedFeed({ url: `http://127.0.0.1:${http}` }))
  }

  get uppermost(): Level {
    return this.levels.at(-1) as Level
  }

  /** Starts all, lets the feed publish, makes the channel of the consumer, and waits until the lowest server knows of it. */
  async start(): Promise<void> {
    for (const { server } of this.levels) await server.start()
    this.feed.token = await tokenAt(this.levels[0] as Level)
    const seat = await this.uppermost.server.seat()
    const channel = await seat.defChannel(['name', type.string, str(CONSUMER)])
    const producer = ['producer', type.string, str('*/*')] as const
    const id = await seat.collect(METRIC, args(producer))
    await seat.ok((seq) => command.subscribe(seq, id, channel))
    seat.peer.destroy()
    const lowest = this.levels[0] as Level
    await until('the lowest server knows what is wanted', async () => (await ledgerAt(lowest))?.['bound'] === 1)
  }

  async remove(): Promise<void> {
    for (const link of this.links) link.close()
    await removeAll(this.levels)
  }
}

async function removeAll(levels: readonly Level[]): Promise<void> {
  for (const { server, disk } of levels) {
    await server.end('SIGKILL')
    disk?.unmount()
    await server.remove()
  }
}

/** The channel that the next level empties, or the consumer of the uppermost one; undefined if there is none yet. */
export function ledgerAt(level: Level): Promise<Json | undefined> {
  return channelAt(level, isOfTree)
}

/** The first channel whose name is as wanted. */
export async function channelAt({ server }: Level, isWanted: (name: string) => boolean): Promise<Json | undefined> {
  const channels = (await askedAt(server, 'producer.channels')) as Json[]
  return channels.find(({ name }) => isWanted(String(name)))
}

/** Whether a channel is one through which values go upwards. */
export function isOfTree(channel: string): boolean {
  return channel === CONSUMER || channel.startsWith('upstream:')
}

/** The counters of what a level consumes. */
export async function countersAt({ server, below }: Level): Promise<Readonly<Record<string, number>>> {
  const sensors = (await askedAt(server, 'producer.sensors')) as Json[]
  const { counters } = sensors.find(({ name }) => name === `upstream/${below}`) ?? {}
  return counters
}

/** The state of the storage of a level, as it says: `full`, for example. */
export async function storageAt({ server }: Level): Promise<string> {
  return ((await askedAt(server, 'producer.stats')) as Json)['storage']
}

async function askedAt(server: ServerProcess, metric: string): Promise<Json> {
  const seat = await server.seat()
  try {
    return decoded(await seat.query(metric))
  } finally {
    seat.peer.destroy()
  }
}

function upstream(name: string, port: number, secret: string): string {
  const login = `user = "admin"\nsecret_file = "${secret}"\n`
  return `${SETTINGS}[[upstream]]\nname = "${name}"\nurl = "tcp://127.0.0.1:${port}"\n${login}`
}

/** Of a user who may publish what is fed. */
async function tokenAt({ server }: Level): Promise<string> {
  const seat = await server.seat()
  const token = await tokenOfPublisher(seat, FAMILY)
  seat.peer.destroy()
  return token
}
