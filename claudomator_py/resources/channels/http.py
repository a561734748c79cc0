"""/v1/channels: which method of the service answers each operation."""

from claudomator_py.api.served import serve
from claudomator_py.resources.channels.service import Channels
from claudomator_py.resources.channels.shape import ChannelCalls

channels = serve(
    "channels",
    Channels,
    {
        ChannelCalls.channels: Channels.page,
        ChannelCalls.create_channel: Channels.create,
        ChannelCalls.channel: Channels.one,
        ChannelCalls.change_channel_settings: Channels.change_settings,
        ChannelCalls.join_channel: Channels.join,
        ChannelCalls.leave_channel: Channels.leave,
        ChannelCalls.mute_participant: Channels.mute,
        ChannelCalls.messages: Channels.messages,
        ChannelCalls.post_message: Channels.post,
        ChannelCalls.message: Channels.message,
        ChannelCalls.process_attachment: Channels.processed,
        ChannelCalls.mark_message: Channels.mark,
        ChannelCalls.channel_stats: Channels.stats,
    },
)
