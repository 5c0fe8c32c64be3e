/**
 * The kit: all that the server hands to a wing. Its parts say what a wing may do; each has at most six members. What a wing is
 * made of besides, such as metrics and keys of the configuration, is in the files beside this one, by purpose.
 */
import type { ForeignCode } from '../kernel/core/faults.ts'
import { SensorDoor } from '../kernel/metrics/sensor-door.ts'
import type { Controls } from './controls.ts'
import { type Door, type DoorServices, Doors } from './door.ts'
import type { Expressions } from './expressions.ts'
import type { Feed, Guest, SensorHub } from './feed.ts'
import type { SharedHistory } from './history.ts'
import { pacerOf } from './io/pacer.ts'
import type { Peer } from './peer.ts'
import { makePoll, type Poll, type PollServices } from './poll.ts'
import type { Clock, Logger } from './running.ts'

export interface Kit {
  readonly self: Self
  readonly clock: Clock
  /** A clock whose time is constant during a turn of the event loop. */
  readonly turnClock: Pick<Clock, 'monotonicMs' | 'microseconds'>
  readonly log: Logger
  readonly feed: Feed
  readonly door: Door
  readonly poll: Poll
  readonly peer: Peer
  readonly controls: Controls
  readonly guests: Guests
  readonly expressions: Expressions
}

/** The server that a wing is part of. */
export interface Self {
  readonly name: string
  /** The directory of its data. */
  readonly dataDir: string
  /** A random id that was made with the data. */
  readonly id: string
  /** The name of this node of a cluster; undefined without one. */
  readonly node: string | undefined
  /** Of a node that leads, if its history is shared; undefined otherwise. */
  readonly sharedHistory: SharedHistory | undefined
  /** `<product>/<version>` */
  readonly software: string
  /** Where relative paths of the configuration file start. */
  readonly configDirectory: string
  /** A key of 32 bytes for a purpose, which follows from the secret that was made with the data: each node of a cluster has the same. */
  keyFor(purpose: string): Uint8Array
}

/** Code that is not the server's, such as that of a plug-in: what it throws, now or later, costs only its owner. */
export interface Guests {
  /** What a guest has in place of the feed: everything that it hands in is checked. */
  feed(guest: Guest): SensorHub
  /** Runs code of a guest, whose exceptions `failed` takes if nobody else does, now and later. What it throws now is thrown. */
  enter<T>(failed: (error: unknown) => void, act: () => T): T
  /** Runs code of the server that a guest has called. */
  leave<T>(act: () => T): T
}

export type KitServices = Omit<DoorServices, 'poll'> &
  PollServices &
  Pick<Kit, 'self' | 'turnClock' | 'controls' | 'expressions'> & {
    readonly peer: Omit<Peer, 'pacer'>
    readonly foreign: ForeignCode
  }

export interface MadeKit {
  readonly kit: Kit
  /** What wings have opened with it. */
  readonly doors: Doors
}

export function makeKit(services: KitServices): MadeKit {
  const { self, clock, turnClock, log, hub, pacing, peer, controls, foreign, expressions } = services
  const poll = makePoll(services)
  const doors = new Doors({ ...services, poll })
  const kit: Kit = {
    self,
    clock,
    turnClock,
    log,
    feed: hub,
    door: doors,
    poll,
    peer: { ...peer, pacer: (sensor, meter) => pacerOf(sensor, meter, pacing) },
    controls,
    expressions,
    guests: {
      feed: (guest) => new SensorDoor(hub, guest),
      enter: (failed, act) => foreign.enter(failed, act),
      leave: (act) => foreign.leave(act),
    },
  }
  return { kit, doors }
}
