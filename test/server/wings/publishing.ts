/** The door of a source for a user who may publish everything, around the readers of its values. */
import { Decoding } from '../../../server/kit/decoding.ts'
import type { DoorAnswer, HttpDoor } from '../../../server/kit/door.ts'
import type { Kit } from '../../../server/kit/kit.ts'
import { LabelledFamily } from '../../../server/kit/labelled-sensor.ts'
import { makePoll } from '../../../server/kit/poll.ts'
import { Publication, type PublicationServices } from '../../../server/kit/publication.ts'
import { Readers } from '../../support/readers.ts'
import { tester } from '../kernel/metrics/fixture.ts'

export interface Published {
  readonly readers: Readers
  readonly post: (body: Uint8Array | string, type: string) => Promise<DoorAnswer>
}

type DoorOf = (publication: Publication, kit: Pick<Kit, 'poll' | 'clock'>) => HttpDoor

export function publishing(name: string, doorOf: DoorOf): Published {
  const readers = new Readers()
  const { hub, quotas, clock, work, inlets } = readers
  const family = new LabelledFamily({
    family: `${name}.`,
    kind: name,
    from: 'a test',
    hub,
    quotas,
    clock,
    keptMs: () => 60_000,
    isPublished: true,
  })
  family.open(tester.tenant)
  const intake = { refusal: undefined, begin: () => ({ stored: async () => undefined }) }
  const rights = { publisher: () => ({ stamp: {}, may: () => true }) }
  const poll = makePoll({ hub, work, inlets, quotas, intake })
  const decoding = new Decoding({ work: poll.work, clock })
  const services = { poll, intake, rights, clock, decoding } as unknown as PublicationServices
  const door = doorOf(new Publication(family, services), { poll, clock })
  readers.bind(`${name}.*`)
  const asker = { identity: tester, credential: undefined } as unknown as Parameters<HttpDoor['take']>[0]['asker']
  const post = (body: Uint8Array | string, type: string) => {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    return door.take({ asker, headers: { 'content-type': type }, body: bytes, isOver: () => false })
  }
  return { readers, post }
}
