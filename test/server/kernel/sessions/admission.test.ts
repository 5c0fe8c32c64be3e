import { describe, expect, it } from 'vitest'
import { Admission, type AdmissionLimits, type ConnectionPlace } from '../../../../server/kernel/sessions/admission.ts'

const EVE = '192.0.2.1'
const BOB = '198.51.100.1'
const LOCAL = '127.0.0.1'

/** An admission, and what became of the connections that it got. */
class Door {
  readonly admission: Admission
  /** The names of connections that gave way, in order. */
  readonly evicted: string[] = []

  constructor(limits: Partial<AdmissionLimits>) {
    this.admission = new Admission({ connections: 1000, unauthenticatedPerNetwork: 1000, ...limits })
  }

  enter(address: string, name = address): ConnectionPlace | undefined {
    return this.admission.enter(address, () => this.evicted.push(name))
  }

  /** `count` connections of an address, called `<address> 0` and so on; the number of those that were refused. */
  flood(address: string | ((n: number) => string), count: number): number {
    const addressOf = typeof address === 'string' ? () => address : address
    let refused = 0
    for (let n = 0; n < count; n++) if (this.enter(addressOf(n), `${addressOf(n)} ${n}`) === undefined) refused++
    return refused
  }

  logIn(address: string, isAdmin = false): ConnectionPlace {
    const place = this.enter(address, 'authenticated')
    if (place === undefined) throw new Error('there was no place')
    this.admission.authenticated(place, isAdmin)
    return place
  }
}

describe('connections of one network before AUTH', () => {
  it('are bounded: the oldest gives way to the next', () => {
    const door = new Door({ unauthenticatedPerNetwork: 3 })
    expect(door.flood(EVE, 5)).toBe(0)
    expect(door.evicted).toEqual([`${EVE} 0`, `${EVE} 1`])
    expect(door.admission.unauthenticated).toBe(3)
    door.enter('192.0.2.200')
    door.enter(BOB)
    expect(door.evicted).toEqual([`${EVE} 0`, `${EVE} 1`, `${EVE} 2`])
  })

  it('are those of a /48 of IPv6', () => {
    const door = new Door({ unauthenticatedPerNetwork: 3 })
    door.flood((n) => `2001:db8:0:${n.toString(16)}::1`, 10)
    expect(door.evicted).toHaveLength(7)
  })

  it('are not bounded on loopback', () => {
    const door = new Door({ unauthenticatedPerNetwork: 3 })
    door.flood(LOCAL, 500)
    expect(door.evicted).toEqual([])
  })

  it('make room when they have logged in or ended', () => {
    const door = new Door({ unauthenticatedPerNetwork: 2 })
    door.logIn(EVE)
    const place = door.enter(EVE) as ConnectionPlace
    door.admission.leave(place)
    door.admission.leave(place)
    door.flood(EVE, 2)
    expect(door.evicted).toEqual([])
    expect([door.admission.open, door.admission.unauthenticated, door.admission.evicted]).toEqual([3, 2, 0])
  })
})

describe('a full server', () => {
  it('takes the place from the oldest connection of the network with most of them', () => {
    const door = new Door({ connections: 9 })
    door.enter(BOB)
    door.flood(EVE, 8)
    door.enter('203.0.113.1')
    door.enter('203.0.113.1')
    expect(door.evicted).toEqual([`${EVE} 0`, `${EVE} 1`])
    expect(door.admission.open).toBe(9)
  })

  it('never takes it from somebody who has logged in', () => {
    const door = new Door({ connections: 5 })
    for (let n = 0; n < 5; n++) door.logIn(BOB)
    expect(door.flood(EVE, 3)).toBe(3)
    expect([door.evicted, door.admission.refused]).toEqual([[], 3])
  })

  it('takes it from the many, however many networks they have', () => {
    const door = new Door({ connections: 100 })
    door.flood((n) => `10.0.${n}.1`, 100)
    door.enter(BOB)
    door.flood((n) => `10.1.${n}.1`, 50)
    expect(door.evicted.slice(0, 2)).toEqual(['10.0.0.1 0', '10.0.1.1 1'].slice(0, 2))
    expect(door.evicted).not.toContain(BOB)
  })

  it('keeps a tenth, at most a hundred, for loopback', () => {
    const door = new Door({ connections: 50 })
    for (let n = 0; n < 45; n++) door.logIn(EVE)
    expect(door.flood(EVE, 1)).toBe(1)
    expect(door.flood(LOCAL, 5)).toBe(0)
    expect(door.admission.open).toBe(50)
    const large = new Door({ connections: 5_000 })
    for (let n = 0; n < 4_900; n++) large.logIn(EVE)
    expect([large.flood(EVE, 1), large.flood(LOCAL, 100)]).toEqual([1, 0])
  })

  it('keeps it also for networks from which an admin has logged in', () => {
    const door = new Door({ connections: 50 })
    door.admission.leave(door.logIn(BOB, true))
    door.admission.leave(door.logIn('203.0.113.1'))
    for (let n = 0; n < 45; n++) door.logIn(EVE)
    expect([door.flood('203.0.113.1', 1), door.flood('198.51.100.7', 5)]).toEqual([1, 0])
  })

  it('keeps it from insiders who are no admins: one for whom there is no other place is closed', () => {
    const door = new Door({ connections: 100 })
    for (let n = 0; n < 90; n++) expect(door.logIn(LOCAL).isOpen).toBe(true)
    expect(door.logIn(LOCAL).isOpen).toBe(false)
    expect([door.evicted, door.admission.refused, door.admission.open]).toEqual([['authenticated'], 1, 90])
    for (let n = 0; n < 10; n++) expect(door.logIn(LOCAL, true).isOpen).toBe(true)
    expect(door.admission.open).toBe(100)
    // Who has not logged in gives way first.
    const other = new Door({ connections: 100 })
    other.flood(EVE, 90)
    expect(other.logIn(LOCAL).isOpen).toBe(true)
    expect([other.evicted, other.admission.open]).toEqual([[`${EVE} 0`], 90])
  })

  it('lets an insider in beside a flood on loopback, and leaves outsiders the rest', () => {
    const door = new Door({ connections: 100 })
    door.flood(LOCAL, 1_000)
    door.flood(EVE, 1_000)
    expect(door.enter('127.0.0.1', 'admin')).toBeDefined()
    expect(door.enter(BOB)).toBeDefined()
    expect(door.evicted).not.toContain('admin')
    expect(door.admission.open).toBe(100)
    const local = new Door({ connections: 20 })
    for (let n = 0; n < 18; n++) local.logIn(EVE)
    local.flood(LOCAL, 2)
    expect(local.flood(LOCAL, 3)).toBe(0)
    expect(local.flood(EVE, 1)).toBe(1)
  })

  it('finds whom to close in as many steps with ten thousand networks as with few', () => {
    const door = new Door({ connections: 10_000 })
    door.flood((n) => `10.${n >> 8}.${n & 255}.1`, 20_000)
    expect(door.evicted).toHaveLength(10_100)
    expect(door.admission.open).toBe(9_900)
  })

  it('is full before the process has no files left, so that the next connection can be accepted', () => {
    const maxOf = (connections: number, openFiles?: number): number => {
      return new Admission({ connections, unauthenticatedPerNetwork: 1, openFiles }).max
    }
    expect([maxOf(10_000), maxOf(10_000, 65_536), maxOf(10_000, 1_500), maxOf(10_000, 256), maxOf(100, 1_500)]).toEqual(
      [10_000, 10_000, 988, 128, 100],
    )
  })
})
