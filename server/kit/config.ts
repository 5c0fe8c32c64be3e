/** How a wing describes its section of the configuration: the section, its keys, and the types that their values have. */
export { isLoopback, isOwnMachine } from '../../auth/network.ts'
export { ConfigError, type ConfigProblem } from '../kernel/config/errors.ts'
export { explainIssue } from '../kernel/config/explain.ts'
export { type ConfigFile, readConfigFile } from '../kernel/config/file.ts'
export {
  camelCased,
  type Section,
  type SectionConfig,
  schemaOf,
  section,
  tableKeys,
  tableList,
} from '../kernel/config/schema.ts'
export {
  ALL_TENANTS,
  addressOrOff,
  bytesOrShare,
  decoded,
  dependentKey,
  duration,
  feed,
  feeds,
  hostNameOrOff,
  inBytes,
  integer,
  ipv4OrOff,
  isTomlTable,
  key,
  liveKey,
  multicastOrOff,
  needed,
  networks,
  oneOf,
  optional,
  path,
  pathOrOff,
  peers,
  plainText,
  tenant,
  tenantOrAll,
  toggle,
  wireName,
} from '../kernel/config/value-types.ts'
