/** The history: what was accepted is remembered, once (docs/history.md). */
import type { Source } from '../../kit/source.ts'
import type { historySection } from './config.ts'
import { type DropServices, historyDrop, historyImport, type ImportServices } from './controls.ts'
import { RemoteEngine } from './engine.ts'
import { HistorySensor } from './figures.ts'
import { ReadableHistory } from './readable.ts'
import { RecentSensor } from './recent.ts'
import { Recordings } from './recordings.ts'
import { SelectSensor } from './select.ts'

export const history: Source<typeof historySection> = {
  open(kit, section) {
    const history = new Recordings(kit)
    const { reading } = history
    const select = new SelectSensor(kit, history)
    const { readRights } = kit.peer.view
    kit.feed.add(new HistorySensor(history, kit.clock))
    kit.feed.add(select)
    kit.feed.add(new RecentSensor(kit, history))
    const drop: DropServices['drop'] = (tenants, matchers) => history.drop(tenants, matchers)
    const take: ImportServices['import'] = (text) => history.import(text)
    const services = { view: kit.peer.view, problem: () => history.unreadable }
    kit.controls.add(historyDrop({ ...services, drop }), historyImport({ ...services, import: take }))
    // The configuration may change before anything may be recorded.
    let wanted = section
    let isListening = false
    return {
      statuses: history.statuses,
      remembered: new ReadableHistory({
        reading,
        readRights,
        problem: () => history.unreadable,
        engine: section.engine && new RemoteEngine(section.engine, readRights, kit.log),
        backUp: (to) => history.backUp(to),
        caughtUp: (tenant) => history.caughtUp(tenant),
      }),
      listen() {
        isListening = true
        return history.follow(wanted)
      },
      reload(section) {
        wanted = section
        if (isListening) void history.follow(section)
      },
      sweep() {
        history.sweep()
        select.sweep()
      },
      close: () => history.stop(),
    }
  },
}
