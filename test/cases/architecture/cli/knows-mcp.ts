// Nothing imports what agents use, or the SDK that it brings.
import '@modelcontextprotocol/sdk/types.js'
import '../packages/mcp/knows-server.ts'
