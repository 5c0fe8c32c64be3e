/** The door of a source for a user who may publish everything, around the readers of its values. */
import { LabelledFamily } from '../../../server/kit/labelled-sensor.ts'
import { Publication, type PublicationOptions } from '../../../server/kit/publication.ts'
import type { DoorAnswer, HttpDoor } from '../../../server/kit/source.ts'
import { Readers } from '../../support/readers.ts'
import { tester } from '../kernel/metrics/fixture.ts'

export interface Published {
  readonly readers: Readers
  readonly post: (body: Uint8Array | string, type: string) => Promise<DoorAnswer>
}

export function publishing(name: string, doorOf: (publication: Publication, readers: Readers) => HttpDoor): Published {
  const readers = new Readers()
  const { hub, quotas, clock, work } = readers
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
  const rights = { publisher: () => ({ may: () => true }) }
  const options = { family, hub, intake, work, clock, rights } as unknown as PublicationOptions
  const door = doorOf(new Publication(options), readers)
  readers.bind(`${name}.*`)
  const asker = { identity: tester, credential: undefined } as unknown as Parameters<HttpDoor['take']>[0]['asker']
  const post = (body: Uint8Array | string, type: string) => {
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    return door.take({ asker, headers: { 'content-type': type }, body: bytes })
  }
  return { readers, post }
}
