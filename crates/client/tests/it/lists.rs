//! Lists through the tool, to the last page.

use mcp_proxy_client::{CapabilityType, ClientError, ListedResource, ProxyClient, ProxyTool};

use crate::plain_server::{FILLERS, PlainServer, clients, connect};

#[tokio::test]
async fn all_pages_of_tools_are_followed() {
    for client in clients().await {
        let tools = client.list_tools().await.unwrap();
        assert_eq!(tools.len(), FILLERS + 7);
        assert_eq!(tools[0].name, "add");
        assert_eq!(tools[FILLERS + 6].name, format!("filler_{}", FILLERS - 1));
        assert!(!tools.iter().any(|tool| tool.name == "proxy"));
    }
}

#[tokio::test]
async fn resources_come_with_their_templates_and_alone() {
    for client in clients().await {
        let both = client.list_resources_and_templates().await.unwrap();
        assert_eq!(both.len(), 151);
        assert!(
            matches!(&both[150], ListedResource::Template(template) if template.uri_template == "greeting://{name}")
        );
        assert_eq!(both[149].uri(), "note://149");
        assert_eq!(client.list_resources().await.unwrap().len(), 150);
        let templates = client.list_resource_templates().await.unwrap();
        assert_eq!(templates[0].name, "greeting");
    }
}

#[tokio::test]
async fn prompts_have_their_arguments() {
    for client in clients().await {
        let prompts = client.list_prompts().await.unwrap();
        assert_eq!(prompts.len(), 1);
        assert_eq!(prompts[0].arguments.as_ref().unwrap()[0].name, "topic");
    }
}

#[tokio::test]
async fn info_finds_by_name_and_by_uri() {
    for client in clients().await {
        let tool = client.info(CapabilityType::Tool, "add").await.unwrap();
        assert_eq!(tool["description"], "Does add");
        let by_uri = client
            .info(CapabilityType::Resource, "note://3")
            .await
            .unwrap();
        let by_name = client
            .info(CapabilityType::Resource, "note 3")
            .await
            .unwrap();
        assert_eq!(by_uri, by_name);
        let error = client
            .info(CapabilityType::Tool, "filler_123x")
            .await
            .unwrap_err();
        let ClientError::ToolFailed { code, result, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(code.as_deref(), Some("not-found"));
        assert_eq!(result.is_error, Some(true));
    }
}

#[tokio::test]
async fn without_transparency_the_lists_are_the_servers_own() {
    let server = ProxyTool::new(PlainServer::default());
    let client = connect(server, ProxyClient::builder()).await;
    assert!(client.offers_proxy_tool() && !client.is_proxied());
    let tools = client.list_tools().await.unwrap();
    assert_eq!(tools[0].name, "proxy");
    assert_eq!(tools.len(), FILLERS + 8);
    assert_eq!(
        client.list_resources_and_templates().await.unwrap().len(),
        151
    );
    assert_eq!(client.list_prompts().await.unwrap().len(), 1);
    let tool = client.info(CapabilityType::Tool, "add").await.unwrap();
    assert_eq!(tool["description"], "Does add");
    assert!(matches!(
        client.info(CapabilityType::Tool, "nope").await,
        Err(ClientError::InvalidArguments(_))
    ));
}
