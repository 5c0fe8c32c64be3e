/** Plug-ins: modules of the operator that add sensors and controls. One that cannot be loaded costs nothing but itself. */
import type { Source } from '../../kit/source.ts'
import type { pluginSection } from './config.ts'
import { HostedPlugin } from './plugin.ts'

export const plugin: Source<typeof pluginSection> = {
  async open(context, tables) {
    const taken = new Set<string>()
    const plugins = tables.map((table) => new HostedPlugin(table, context, taken))
    // One after the other, so that the first to name a family has it.
    for (const one of plugins) {
      context.opened(() => one.close())
      await one.load()
    }
    return {
      statuses: plugins,
      controls: plugins.flatMap(({ controls }) => controls),
    }
  },
}
